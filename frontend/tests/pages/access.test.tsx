// @vitest-environment happy-dom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { AuditTable, detailText } from "../../src/pages/access/audit-log.tsx";
import { scopesOf } from "../../src/pages/access/tokens.tsx";

afterEach(cleanup);

test("a token's scopes are those of the best role in one of its projects", () => {
  expect(scopesOf([])).toEqual([]);
  expect(scopesOf([{ role: "viewer" }])).toEqual(["read"]);
  expect(scopesOf([{ role: "viewer" }, { role: "launcher" }])).toEqual(["read", "write"]);
  expect(scopesOf([{ role: "admin" }, { role: "viewer" }])).toEqual(["read", "write", "admin"]);
});

test("details of an entry are words", () => {
  expect(detailText({})).toBe("");
  expect(detailText({ name: "ci", scopes: ["read"], is_admin: false })).toBe(
    'name: ci, scopes: ["read"], is_admin: false',
  );
});

test("an entry says who did what from where, and nothing of it is markup", () => {
  const entry = {
    id: 1,
    time: "2030-01-31T12:00:00Z",
    actor: "token:grace/<img src=x onerror=alert(1)>",
    action: "run.launch",
    target: "6a0e4b52",
    detail: { name: "<script>alert(1)</script>" },
    project: "default",
    address: null,
    request_id: "r1",
  };
  const { container } = render(<AuditTable entries={[entry]} />);
  expect(screen.getByText(entry.actor).tagName).toBe("TD");
  expect(screen.getByText("the service itself").dataset.label).toBe("from");
  expect(screen.getByText("name: <script>alert(1)</script>")).toBeTruthy();
  expect(container.querySelector("img, script")).toBeNull();
});
