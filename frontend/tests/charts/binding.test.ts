import { expect, test } from "vitest";
import cases from "../../../contract/figure_binding_cases.json";
import { bind, type Figure, seriesNames } from "../../src/charts/binding.ts";
import type { Columns } from "../../src/series/columns.ts";

interface Case {
  about: string;
  template: Figure;
  runs: { label: string; series: Record<string, Columns> }[];
  expected: Figure;
}

// Comparing several runs is the server's alone.
const ofOneRun = (cases as unknown as Case[]).filter(({ runs }) => runs.length === 1);

test("the shared cases are there", () => {
  expect(ofOneRun.length).toBeGreaterThan(3);
});

test.each(ofOneRun)("$about", ({ template, runs, expected }) => {
  const before = structuredClone(template);
  const series = runs[0]?.series ?? {};
  expect(bind(template, (name) => series[name])).toEqual(expected);
  expect(template).toEqual(before);
});

test("names of series are listed once, the factors among them", () => {
  const template: Figure = {
    data: [
      { meta: { series: "a", times_series: "b" } },
      { meta: { series: "a" } },
      { name: "a line without data" },
    ],
    layout: {},
  };
  expect(seriesNames(template)).toEqual(["a", "b"]);
});
