import type { FieldProblem } from "../forms/problems.ts";

/** An answer that is not a success, in the server's words (RFC 9457), or no answer at all (status 0). */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly errors: FieldProblem[] = [],
    readonly requestId: string | null = null,
  ) {
    super(message);
    this.name = "ApiProblem";
  }

  get isUnauthenticated(): boolean {
    return this.status === 401;
  }
}

interface ProblemBody {
  title?: string;
  detail?: string;
  request_id?: string;
  errors?: { pointer?: string | null; parameter?: string | null; detail: string; value?: unknown }[];
}

/** The answer's problem document as an error; without one, its status in words. */
export function problemOf(response: Response, body: unknown): ApiProblem {
  const problem: ProblemBody = typeof body === "object" && body !== null ? body : {};
  const errors = (problem.errors ?? []).map((error) => ({
    pointer: error.pointer ?? `/${error.parameter ?? ""}`,
    detail: error.detail,
    value: error.value,
  }));
  const words = problem.detail ?? problem.title ?? `The server answered ${response.status}.`;
  return new ApiProblem(response.status, words, errors, problem.request_id ?? null);
}

/** What to tell a reader about any error. */
export function wordsOf(error: unknown): string {
  if (error instanceof ApiProblem) return error.message;
  return error instanceof Error ? error.message : String(error);
}
