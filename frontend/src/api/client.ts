import createClient, { type Middleware } from "openapi-fetch";
import { ApiProblem, problemOf } from "./problem.ts";
import type { components, paths } from "./schema.d.ts";

export type Schemas = components["schemas"];
export type RunRead = Schemas["RunRead"];
export type RunSummary = Schemas["RunSummary"];
export type RunStatus = RunSummary["status"];

let csrfToken: string | null = null;

/** Remembers the token that proves to the server that a change comes from this page. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

const csrf: Middleware = {
  onRequest({ request }) {
    if (csrfToken && request.method !== "GET") request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
};

export const api = createClient<paths>({ baseUrl: window.location.origin });
api.use(csrf);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of a success; anything else is thrown as an ApiProblem. */
export async function unwrap<T>(answer: Promise<Answer<T>>): Promise<T> {
  let settled: Answer<T>;
  try {
    settled = await answer;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiProblem(
      0,
      "The server does not answer. Check that it runs and that this machine reaches it.",
    );
  }
  if (!settled.response.ok) throw problemOf(settled.response, settled.error);
  return settled.data as T;
}
