// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Projects } from "../../src/pages/access/projects.tsx";
import { serve } from "../serve.ts";

afterEach(cleanup);

const project = {
  id: "1",
  name: "vision",
  role: "admin",
  num_runs: 3,
  num_members: 0,
  created_at: "2030-01-31T12:00:00Z",
};

function open(isAdmin: boolean, refusal?: { status: number; body: unknown }) {
  const asked = serve({
    "GET /api/v1/projects": [{ body: { items: [project], next_cursor: null } }],
    "GET /api/v1/projects/vision/members": [{ body: [] }],
    "PATCH /api/v1/projects/vision": [refusal ?? { body: { ...project, name: "sight" } }],
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Projects isAdmin={isAdmin} />
    </QueryClientProvider>,
  );
  return asked;
}

test("a project is renamed by who administers everything", async () => {
  const asked = open(true);
  fireEvent.click(await screen.findByText("Rename"));
  fireEvent.change(screen.getByLabelText("New name of vision"), { target: { value: " sight " } });
  fireEvent.click(screen.getByText("Rename it"));
  const body = { name: "sight" };
  await waitFor(() =>
    expect(asked).toContainEqual({ what: "PATCH /api/v1/projects/vision", ifMatch: null, body }),
  );
  await waitFor(() => expect(screen.queryByText("Rename it")).toBeNull());
});

test("what was typed stays when it is refused", async () => {
  open(true, { status: 409, body: { detail: "There is a project sight already." } });
  fireEvent.click(await screen.findByText("Rename"));
  fireEvent.change(screen.getByLabelText("New name of vision"), { target: { value: "sight" } });
  fireEvent.click(screen.getByText("Rename it"));
  expect(await screen.findByText("There is a project sight already.")).toBeTruthy();
  expect((screen.getByLabelText("New name of vision") as HTMLInputElement).value).toBe("sight");
});

test("others rename nothing", async () => {
  open(false);
  await screen.findByText("vision");
  expect(screen.queryByText("Rename")).toBeNull();
});
