import { expect, test } from "vitest";
import { problemOf } from "../../src/api/problem.ts";

test("a problem document becomes its words, its fields and its request", () => {
  const body = {
    title: "Unprocessable",
    detail: "2 problems",
    request_id: "r1",
    errors: [
      { pointer: "/config/seed", detail: "too large", value: 1e20 },
      { parameter: "limit", pointer: null, detail: "too large" },
    ],
  };
  const problem = problemOf(new Response(null, { status: 422 }), body);
  expect(problem).toMatchObject({ status: 422, message: "2 problems", requestId: "r1" });
  expect(problem.errors.map(({ pointer }) => pointer)).toEqual(["/config/seed", "/limit"]);
});

test("an answer without a problem document still says its status", () => {
  expect(problemOf(new Response(null, { status: 502 }), "<html>").message).toBe("The server answered 502.");
  expect(problemOf(new Response(null, { status: 401 }), {}).isUnauthenticated).toBe(true);
});
