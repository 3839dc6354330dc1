// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, expect, test } from "vitest";
import document from "../../openapi.json";
import type { Schemas } from "../../src/api/client.ts";
import { countWords } from "../../src/pages/sweep/counts.tsx";
import { FIGURES } from "../../src/pages/sweeps/figures.ts";
import { SweepsPage } from "../../src/pages/sweeps/sweeps-page.tsx";
import { serve } from "../serve.ts";

afterEach(cleanup);

const K = "drafter.draft_length";
const sweep: Schemas["SweepSummary"] = {
  id: "s1",
  name: "<b>lengths</b>",
  labels: { team: "rl" },
  project: "default",
  cluster: "local",
  keys: [K],
  max_concurrent: null,
  num_runs: 3,
  num_runs_by_status: { queued: 1, running: 2 },
  is_ended: false,
  created_by: "ada",
  created_at: "2030-01-31T12:00:00Z",
  best: { run_id: "r2", name: "lengths draft_length=3", point: { [K]: 3 }, metric: "reward", value: 0.71 },
};

function open(pages: Schemas["SweepPage"][], address = "/sweeps", role = "launcher") {
  const asked = serve({
    "GET /api/v1/sweeps": pages.map((body) => ({ body })),
    "GET /api/v1/projects": [{ body: { items: [{ name: sweep.project, role }], next_cursor: null } }],
    "POST /api/v1/sweeps/s1/stop": [{ status: 202, body: sweep }],
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MemoryRouter initialEntries={[address]}>
        <SweepsPage />
      </MemoryRouter>
    </QueryClientProvider>,
  );
  return asked;
}

test("a sweep stands with how its runs do, the best of them, and a link to both", async () => {
  open([{ items: [sweep], next_cursor: null }]);
  const link = await screen.findByText("<b>lengths</b>");
  expect(link.getAttribute("href")).toBe("/sweeps/s1");
  expect(screen.getByText("2 running")).toBeTruthy();
  expect(screen.getByText("1 queued")).toBeTruthy();
  expect(screen.getByText("0.710")).toBeTruthy();
  expect(screen.getByText("draft_length = 3").getAttribute("href")).toBe("/runs/r2");
});

test("what was measured nowhere is no best, and an ended sweep is not stopped", async () => {
  open(
    [{ items: [{ ...sweep, best: null, is_ended: true }], next_cursor: null }],
    "/sweeps?best=acceptance_length",
  );
  expect(await screen.findByText("not measured yet")).toBeTruthy();
  expect(screen.getByText("Best acceptance length")).toBeTruthy();
  expect(screen.queryByText("Stop all")).toBeNull();
});

test("all its runs are stopped after a question", async () => {
  HTMLDialogElement.prototype.showModal ??= () => {};
  const asked = open([{ items: [sweep], next_cursor: null }]);
  fireEvent.click(await screen.findByText("Stop all"));
  fireEvent.click(screen.getByText("Stop the sweep"));
  await waitFor(() => expect(asked.map(({ what }) => what)).toContain("POST /api/v1/sweeps/s1/stop"));
  expect(await screen.findByText("Stopping")).toBeTruthy();
});

test("who only sees the project is not offered to stop", async () => {
  open([{ items: [sweep], next_cursor: null }], "/sweeps", "viewer");
  await screen.findByText("2 running");
  await waitFor(() => expect(screen.queryByText("Stop all")).toBeNull());
});

test("older sweeps are fetched when asked for", async () => {
  const older = { ...sweep, id: "s0", name: "older" };
  open([
    { items: [sweep], next_cursor: "c" },
    { items: [older], next_cursor: null },
  ]);
  fireEvent.click(await screen.findByText("Show older sweeps"));
  expect(await screen.findByText("older")).toBeTruthy();
  expect(screen.queryByText("Show older sweeps")).toBeNull();
});

test("without sweeps it is said how to make one", async () => {
  open([{ items: [], next_cursor: null }]);
  expect(await screen.findByText("No sweeps yet.")).toBeTruthy();
});

test("the page offers the figures that the server knows", () => {
  const metric = document.components.schemas.SweepBest.properties.metric;
  expect(Object.keys(FIGURES).toSorted()).toEqual(metric.enum.toSorted());
});

test("counts are told in the order of a run's life", () => {
  expect(countWords({ succeeded: 1, queued: 2, dispatching: 3 })).toBe("2 queued, 3 starting, 1 succeeded");
});
