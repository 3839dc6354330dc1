// @vitest-environment happy-dom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Findings } from "../../src/pages/cluster-check.tsx";

afterEach(cleanup);

test("what is wrong stands before what is right", () => {
  const findings = [
    { name: "ray", is_ok: true, detail: "2.56.0" },
    { name: "storage_dir", is_ok: false, detail: "/data cannot be written" },
    { name: "api_url", is_ok: true, detail: "answers" },
  ];
  render(<Findings check={{ id: "check-a-1", state: "failed", findings, log: [] }} />);
  expect(screen.getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
    "Wrongstorage_dir /data cannot be written",
    "OKray 2.56.0",
    "OKapi_url answers",
  ]);
});

test("a job that came to no findings shows how it ended", () => {
  const log = ["ERROR: No matching distribution", "exit 1"];
  render(<Findings check={{ id: "check-a-1", state: "failed", findings: [], log }} />);
  expect(screen.getByText(/No matching distribution/).textContent).toBe(log.join("\n"));
});
