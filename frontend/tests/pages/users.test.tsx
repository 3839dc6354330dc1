// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Users } from "../../src/pages/access/users.tsx";
import { serve } from "../serve.ts";

afterEach(cleanup);

const person = {
  id: "1",
  name: "grace",
  email: null,
  is_admin: false,
  is_active: true,
  oidc_subject: null,
  created_at: "2030-01-31T12:00:00Z",
};

test("a change of somebody who was changed meanwhile is not made, and the list is fetched anew", async () => {
  const theirs = { ...person, is_active: false };
  const page = (user: typeof person) => ({ body: { items: [user], next_cursor: null } });
  const asked = serve({
    "GET /api/v1/users": [page(person), page(theirs)],
    "GET /api/v1/users/grace": [{ body: theirs, etag: '"b.1"' }],
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Users />
    </QueryClientProvider>,
  );
  fireEvent.click(await screen.findByText("Make administrator"));
  expect((await screen.findByRole("alert")).textContent).toContain("May log in: yes became no.");
  expect(await screen.findByText("Let in again")).toBeTruthy();
  expect(asked.some(({ what }) => what.startsWith("PATCH"))).toBe(false);
});
