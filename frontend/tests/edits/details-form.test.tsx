// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import type { RunRead } from "../../src/api/client.ts";
import { DetailsForm } from "../../src/edits/details-form.tsx";
import { editableRun } from "../../src/edits/kinds.ts";
import { serve } from "../serve.ts";

afterEach(cleanup);

const AT = "/api/v1/runs/r1";
const run = {
  id: "r1",
  name: "eagle3",
  labels: { team: "rl" },
  notes: "",
  priority: 0,
} as unknown as RunRead;
const theirs = { ...run, notes: "theirs", labels: { team: "vision" } };

function open(hasPriority = false) {
  const client = new QueryClient();
  const onChanged = vi.fn();
  const onClose = vi.fn();
  const form = (isWaiting: boolean) => (
    <QueryClientProvider client={client}>
      <DetailsForm
        noun="run"
        editable={editableRun("r1")}
        seen={run}
        hasPriority={isWaiting}
        onChanged={onChanged}
        onClose={onClose}
      />
    </QueryClientProvider>
  );
  const { rerender } = render(form(hasPriority));
  return { onChanged, onClose, beginRun: () => rerender(form(false)) };
}

const type = (label: string, value: string) =>
  fireEvent.change(screen.getByLabelText(label), { target: { value } });
const shown = (label: string) => (screen.getByLabelText(label) as HTMLInputElement).value;

test("only what was typed and differs is sent, with the tag", async () => {
  const asked = serve({
    [`GET ${AT}`]: [{ body: run, etag: '"a.1"' }],
    [`PATCH ${AT}`]: [{ body: { ...run, notes: "why" } }],
  });
  const { onClose } = open(true);
  type("Notes", "why");
  type("Name", "x");
  type("Name", "eagle3");
  type("Priority", "7");
  fireEvent.click(screen.getByText("Save"));
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(asked.at(-1)).toEqual({
    what: `PATCH ${AT}`,
    ifMatch: '"a.1"',
    body: { notes: "why", priority: 7 },
  });
});

test("nothing changed is nothing saved", () => {
  const asked = serve({});
  const { onClose } = open();
  expect(screen.queryByLabelText("Priority")).toBeNull();
  fireEvent.click(screen.getByText("Save"));
  expect(onClose).toHaveBeenCalled();
  expect(asked).toEqual([]);
});

test("after somebody else's change what was typed stays, theirs is told, and saving again is meant", async () => {
  const asked = serve({
    [`GET ${AT}`]: [
      { body: run, etag: '"a.1"' },
      { body: theirs, etag: '"b.1"' },
    ],
    [`PATCH ${AT}`]: [{ status: 412, body: { detail: "changed" } }, { body: { ...theirs, notes: "mine" } }],
  });
  const { onClose } = open();
  type("Notes", "mine");
  fireEvent.click(screen.getByText("Save"));
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toContain("Somebody else has changed this meanwhile. Nothing was saved.");
  expect(alert.textContent).toContain("Labels: team: rl became team: vision.");
  expect(alert.textContent).toContain("Notes: nothing became “theirs”. You changed it, too");
  expect([shown("Notes"), shown("Labels")]).toEqual(["mine", "team: vision"]);
  fireEvent.click(screen.getByText("Save"));
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(asked.at(-1)).toEqual({ what: `PATCH ${AT}`, ifMatch: '"b.1"', body: { notes: "mine" } });
});

test("mine can be dropped for theirs", async () => {
  serve({ [`GET ${AT}`]: [{ body: theirs, etag: '"b.1"' }] });
  const { onChanged, onClose } = open();
  type("Notes", "mine");
  fireEvent.click(screen.getByText("Save"));
  fireEvent.click(await screen.findByText("Drop mine, keep theirs"));
  expect(shown("Notes")).toBe("theirs");
  expect(onChanged).toHaveBeenCalledWith(theirs);
  fireEvent.click(screen.getByText("Save"));
  expect(onClose).toHaveBeenCalled();
});

test("a priority typed before the run began holds nothing up", async () => {
  const asked = serve({
    [`GET ${AT}`]: [{ body: run, etag: '"a.1"' }],
    [`PATCH ${AT}`]: [{ body: { ...run, notes: "why" } }],
  });
  const { onClose, beginRun } = open(true);
  type("Priority", "7");
  type("Notes", "why");
  beginRun();
  fireEvent.click(screen.getByText("Save"));
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(asked.at(-1)?.body).toEqual({ notes: "why" });
});

test("what is wrong stands under its field", async () => {
  const errors = [
    { pointer: "/name", detail: "must not be empty" },
    { pointer: "/labels/-", detail: "must begin with a letter or digit" },
  ];
  serve({
    [`GET ${AT}`]: [{ body: run, etag: '"a.1"' }],
    [`PATCH ${AT}`]: [{ status: 422, body: { detail: "2 problems", errors } }],
  });
  open();
  type("Name", "");
  type("Labels", "-: x");
  fireEvent.click(screen.getByText("Save"));
  expect(await screen.findByText("Must not be empty.")).toBeTruthy();
  expect(screen.getByText("Must begin with a letter or digit.")).toBeTruthy();
  expect(screen.getByLabelText("Name").getAttribute("aria-invalid")).toBe("true");
});
