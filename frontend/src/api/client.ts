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
  return (await settle(answer)).data as T;
}

/** Something that others may change meanwhile, and the tag of its version. */
export interface Tagged<T> {
  value: T;
  etag: string | null;
}

/** The same with its tag, to be given back as If-Match with a change. */
export async function unwrapTagged<T>(answer: Promise<Answer<T>>): Promise<Tagged<T>> {
  const { data, response } = await settle(answer);
  return { value: data as T, etag: response.headers.get("ETag") };
}

async function settle<T>(answer: Promise<Answer<T>>): Promise<Answer<T>> {
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
  return settled;
}
