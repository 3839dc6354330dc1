// @vitest-environment happy-dom
import { cleanup, render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, expect, test } from "vitest";
import { GatesPanel } from "../../src/pages/run/gates/gates.tsx";
import { GatesBadge } from "../../src/pages/run/gates/gates-badge.tsx";
import { geometryOf } from "../../src/pages/run/gates/interval.ts";
import type { GateResult, RunGates } from "../../src/pages/run/gates/use-gates.ts";

afterEach(cleanup);

const RUN = "6a0e4b52-3f0d-4c1b-9d3e-0d8d4f0a7c11";

const passed: GateResult = {
  name: "acceptance_length >= 2.8",
  assertion: "acceptance_length >= 2.8",
  verdict: "passed",
  is_passed: true,
  reason: "3 tokens (95 % interval 2.9 to 3.1) is >= 2.8.",
  metric: "rollout/acceptance_length_tokens",
  unit: "tokens",
  aggregate: "mean",
  operator: ">=",
  confidence: 0.95,
  estimate: 3,
  low: 2.9,
  high: 3.1,
  limit: 2.8,
  first_step: 1,
  last_step: 40,
  num_values: 40,
  num_non_finite: 0,
  num_effective: 30,
  method: "Student's t",
  baseline: null,
};
const compared: GateResult = {
  ...passed,
  name: "no worse",
  assertion: "reward >= baseline - 0.02",
  verdict: "undecided",
  reason: "0.71: undecided.",
  unit: "1",
  estimate: 0.71,
  low: 0.6,
  high: 0.8,
  limit: 0.7,
  baseline: {
    run_id: RUN,
    run_name: "<b>nightly</b>",
    estimate: 0.72,
    first_step: 1,
    last_step: 40,
    num_values: 40,
    is_paired: true,
  },
};

function gates(results: GateResult[] | null, verdict: RunGates["verdict"] = "passed"): RunGates {
  const num_failed = results?.filter(({ is_passed }) => !is_passed).length ?? 0;
  const shared = { id: RUN, created_at: "2030-01-31T12:00:00Z", trigger: "end" as const };
  const { assertion } = passed;
  return {
    run_id: RUN,
    verdict,
    gates: [
      {
        assertion,
        name: null,
        baseline: null,
        confidence: 0.95,
        on_undecided: "pass",
        on_no_baseline: "pass",
      },
    ],
    evaluation: results && {
      ...shared,
      run_id: RUN,
      evaluated_by: null,
      run_status: "succeeded",
      verdict: num_failed ? "failed" : "passed",
      num_gates: results.length,
      num_failed,
      results,
    },
    evaluations: [],
  };
}

const show = (found: RunGates) =>
  render(
    <MemoryRouter>
      <GatesPanel found={found} />
    </MemoryRouter>,
  );

test("each gate has its verdict, figure, interval and reason", () => {
  show(gates([passed, { ...passed, verdict: "failed", is_passed: false, reason: "It is not." }], "failed"));
  const text = screen.getByRole("region", { name: "Gates" }).textContent;
  for (const part of ["1 of 2 passed", "Passed", "Failed", "3.000 tokens", "It is not."])
    expect(text).toContain(part);
  expect(screen.getAllByRole("img")).toHaveLength(2);
});

test("a baseline is linked and named as text", () => {
  show(gates([compared]));
  const link = screen.getByRole("link", { name: "<b>nightly</b>" });
  expect(link.getAttribute("href")).toBe(`/runs/${RUN}`);
  expect(screen.getByText(/0\.7200 of/).textContent).toContain("step by step");
});

test("gates that wait are listed, and a run without any shows nothing", () => {
  const { unmount } = show(gates(null, "pending"));
  expect(screen.getByRole("region").textContent).toContain("1 gate, judged when the run has ended");
  unmount();
  show({ ...gates(null, null), gates: [] });
  expect(screen.queryByRole("region")).toBeNull();
});

test("the mark has everything in view, in order, with the side that breaks the gate", () => {
  const found = geometryOf(passed);
  expect(found).toMatchObject({ bad: "left", baseline: null, isLowOpen: false, isHighOpen: false });
  const places = [found?.limit, found?.low, found?.estimate, found?.high].map(Number);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(places[0]).toBeCloseTo(0.12);
  expect(places[3]).toBeCloseTo(0.88);
  expect(geometryOf({ ...passed, operator: "<" })?.bad).toBe("right");
  expect(geometryOf(compared)?.baseline).toBeGreaterThan(geometryOf(compared)?.limit ?? 1);
});

test("an open end reaches the border, and one value stands in the middle", () => {
  expect(geometryOf({ ...passed, low: null, high: null })).toMatchObject({
    low: 0,
    high: 1,
    isLowOpen: true,
  });
  const same = { ...passed, estimate: 2, low: 2, high: 2, limit: 2 };
  expect(geometryOf(same)).toMatchObject({ estimate: 0.5, limit: 0.5 });
  expect(geometryOf({ ...passed, limit: null })).toBeNull();
});

test("the list tells a verdict, and that one is awaited only once the run has ended", () => {
  const words = (gates_verdict: "passed" | "failed" | "pending" | null, is_ended = true) => {
    const { container, unmount } = render(<GatesBadge run={{ gates_verdict, is_ended }} />);
    const text = container.textContent;
    unmount();
    return text;
  };
  expect([words("passed"), words("failed"), words("pending")]).toEqual([
    "Gates passed",
    "Gates failed",
    "Gates pending",
  ]);
  expect([words("pending", false), words(null)]).toEqual(["", ""]);
});
