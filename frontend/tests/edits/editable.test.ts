// @vitest-environment happy-dom
import { expect, test } from "vitest";
import document from "../../openapi.json";
import { ApiProblem } from "../../src/api/problem.ts";
import { changesBetween, EditConflict, saveEdit } from "../../src/edits/editable.ts";
import * as kinds from "../../src/edits/kinds.ts";
import { valueWords } from "../../src/edits/words.ts";
import { serve } from "../serve.ts";

const user = { name: "grace", email: null, is_admin: false, is_active: true, oidc_subject: null };
const seen = { ...user, id: "1", created_at: "2030-01-31T12:00:00Z" };
const editable = kinds.editableUser("grace");
const AT = "/api/v1/users/grace";
const changed = { status: 412, body: { detail: "Somebody has changed this since you loaded it." } };

test("a change goes with the tag of what the reader has seen", async () => {
  const asked = serve({
    [`GET ${AT}`]: [{ body: seen, etag: '"a.1"' }],
    [`PATCH ${AT}`]: [{ body: { ...seen, is_admin: true } }],
  });
  expect((await saveEdit(editable, seen, { is_admin: true })).is_admin).toBe(true);
  expect(asked.at(-1)).toEqual({ what: `PATCH ${AT}`, ifMatch: '"a.1"', body: { is_admin: true } });
});

test("what somebody else has changed before is told, and nothing is saved", async () => {
  const theirs = { ...seen, is_active: false };
  const asked = serve({ [`GET ${AT}`]: [{ body: theirs, etag: '"b.1"' }] });
  const conflict = await saveEdit(editable, seen, { is_admin: true }).catch((error) => error);
  expect(conflict).toBeInstanceOf(EditConflict);
  expect(conflict.theirs).toEqual(theirs);
  expect(conflict.changes).toEqual([{ field: "is_active", name: "May log in", before: true, now: false }]);
  expect(asked.map(({ what }) => what)).toEqual([`GET ${AT}`]);
});

test("who is faster by a moment is told by the server's refusal of the tag", async () => {
  serve({
    [`GET ${AT}`]: [
      { body: seen, etag: '"a.1"' },
      { body: { ...seen, email: "g@x.org" }, etag: '"b.1"' },
    ],
    [`PATCH ${AT}`]: [changed],
  });
  const conflict = await saveEdit(editable, seen, { is_admin: true }).catch((error) => error);
  expect(conflict.changes).toEqual([{ field: "email", name: "Email", before: null, now: "g@x.org" }]);
});

test("other refusals stay as they are", async () => {
  serve({
    [`GET ${AT}`]: [{ body: seen, etag: '"a.1"' }],
    [`PATCH ${AT}`]: [{ status: 409, body: { detail: "nobody else administers this service" } }],
  });
  const refused = await saveEdit(editable, seen, { is_admin: false }).catch((error) => error);
  expect(refused).toBeInstanceOf(ApiProblem);
  expect(refused.message).toContain("nobody else");
});

test("what is equal in another order is no change", () => {
  const fields = { labels: "Labels", dirs: "Folders", left: "Left out" };
  const before = { labels: { a: "1", b: "2" }, dirs: ["x", "y"], left: null };
  expect(changesBetween(fields, before, { labels: { b: "2", a: "1" }, dirs: ["x", "y"] })).toEqual([]);
  const names = changesBetween(fields, before, { labels: {}, dirs: ["y", "x"] }).map(({ name }) => name);
  expect(names).toEqual(["Labels", "Folders"]);
});

test("values are told in words", () => {
  expect([null, "", undefined, [], {}].map(valueWords)).toEqual(Array(5).fill("nothing"));
  expect([true, false, 3, "a note", ["x", "y"]].map(valueWords)).toEqual([
    "yes",
    "no",
    "3",
    "“a note”",
    "x, y",
  ]);
  expect(valueWords({ team: "rl", smoke: "" })).toBe("team: rl, smoke");
  expect(valueWords({ kind: "runtime_env", pip: ["a==1"] })).toBe('kind: runtime_env, pip: ["a==1"]');
  expect(valueWords("x".repeat(300))).toHaveLength(201);
});

const schemas = document.components.schemas;
test.each([
  ["RunUpdate", kinds.editableRun("1")],
  ["SweepUpdate", kinds.editableSweep("1")],
  ["UserUpdate", kinds.editableUser("grace")],
  ["WebhookUpdate", kinds.editableWebhook("1")],
  ["ClusterUpdate", kinds.editableCluster("far")],
] as const)("every field of %s that the server compares is compared here, too", (name, { fields }) => {
  expect(Object.keys(fields).toSorted()).toEqual(Object.keys(schemas[name].properties).toSorted());
});
