// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { Schemas } from "../../src/api/client.ts";
import { ClusterLimits, changedLimits, Shares } from "../../src/pages/cluster-limits.tsx";
import { clusterHelp } from "../../src/pages/launch/run-fields.tsx";
import { serve } from "../serve.ts";

afterEach(cleanup);

const cluster = {
  name: "far",
  max_concurrent_runs: 4,
  max_concurrent_runs_per_user: 2,
  max_concurrent_runs_per_project: null,
  num_live_runs: 3,
  num_queued_runs: 0,
} as Schemas["ClusterRead"];
const AT = "/api/v1/clusters/far";
const shares = { users: [{ name: "ada", num_live_runs: 2, num_queued_runs: 5 }], projects: [] };

function open(isAdmin: boolean, name = "far") {
  const asked = serve({
    "GET /api/v1/session": [{ body: { user: { name: "x", is_admin: isAdmin }, csrf_token: "t" } }],
    [`GET /api/v1/clusters/${name}/shares`]: [{ body: shares }],
    [`GET ${AT}`]: [{ body: cluster, etag: '"a.1"' }],
    [`PATCH ${AT}`]: [{ body: cluster }],
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <ClusterLimits cluster={{ ...cluster, name }} />
    </QueryClientProvider>,
  );
  return asked;
}

test("what is in use and what waits is shown beside the limits", async () => {
  open(false);
  expect(await screen.findByText("2 of 2")).toBeTruthy();
  expect(screen.getByText("3 of 4 taken, 0 waiting")).toBeTruthy();
  expect(screen.getByText("at most 2 runs at once")).toBeTruthy();
  expect(screen.getByText("no limit but the places")).toBeTruthy();
  expect(screen.queryByText("Change limits")).toBeNull();
});

test("an administrator changes limits, with the tag, and lifts one by emptying it", async () => {
  const asked = open(true);
  fireEvent.click(await screen.findByText("Change limits"));
  fireEvent.change(screen.getByLabelText("Of each user at most"), { target: { value: "" } });
  fireEvent.change(screen.getByLabelText("Of each project at most"), { target: { value: "3" } });
  fireEvent.click(screen.getByText("Save"));
  const body = { max_concurrent_runs_per_user: null, max_concurrent_runs_per_project: 3 };
  await waitFor(() => expect(asked).toContainEqual({ what: `PATCH ${AT}`, ifMatch: '"a.1"', body }));
  expect(await screen.findByText("Change limits")).toBeTruthy();
});

test("a cluster keeps a number of places", async () => {
  const asked = open(true);
  fireEvent.click(await screen.findByText("Change limits"));
  fireEvent.change(screen.getByLabelText("Places"), { target: { value: "" } });
  fireEvent.click(screen.getByText("Save"));
  expect(screen.getByText("A cluster has at least one place.")).toBeTruthy();
  expect(asked.filter(({ what }) => what.startsWith("PATCH"))).toEqual([]);
});

test("the cluster that follows the service's environment says so and is not changed here", async () => {
  open(true, "local");
  expect(await screen.findByText("FOREDECK_MAX_CONCURRENT_RUNS")).toBeTruthy();
  expect(screen.queryByText("Change limits")).toBeNull();
});

test("only what differs is sent, and text that is no number as it is", () => {
  expect(changedLimits(cluster, { max_concurrent_runs: 4, max_concurrent_runs_per_user: 2 })).toEqual({});
  expect(changedLimits(cluster, { max_concurrent_runs: undefined })).toEqual({});
  expect(changedLimits(cluster, { max_concurrent_runs: "many" })).toEqual({ max_concurrent_runs: "many" });
  expect(changedLimits(cluster, { max_concurrent_runs_per_project: undefined })).toEqual({});
});

test("nobody who uses it is no table, and a limit above the places is none", () => {
  const { container } = render(<Shares title="User" shares={[]} limit={null} places={4} />);
  expect(container.innerHTML).toBe("");
  render(<Shares title="User" shares={shares.users} limit={9} places={4} />);
  expect(screen.getByText("2 of 4")).toBeTruthy();
});

test("the launch form says what a run would meet there", () => {
  expect(clusterHelp(undefined)).toBe("The Ray cluster that carries it.");
  expect(clusterHelp(cluster)).toBe("The Ray cluster that carries it: 3 of 4 places taken.");
  expect(clusterHelp({ ...cluster, num_live_runs: 4, num_queued_runs: 1 })).toBe(
    "The Ray cluster that carries it: 4 of 4 places taken, 1 run waiting. Yours would wait in its queue.",
  );
});
