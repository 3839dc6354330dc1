import { renderToStaticMarkup } from "react-dom/server";
import { MemoryRouter } from "react-router";
import { expect, test } from "vitest";
import type { RunSummary } from "../../src/api/client.ts";
import { QueuePlace } from "../../src/pages/runs/run-table.tsx";
import { keyTitle, pointValue } from "../../src/pages/sweep/point.ts";
import { SweepTable } from "../../src/pages/sweep/sweep-table.tsx";

const K = "drafter.draft_length";

test("a value is shown as people write it", () => {
  const point = { [K]: 3, drafter: { kind: "none" }, notes: "plain", seed: null };
  expect(pointValue(point, K)).toBe("3");
  expect(pointValue(point, "drafter")).toBe('{"kind":"none"}');
  expect(pointValue(point, "notes")).toBe("plain");
  expect(pointValue(point, "seed")).toBe("default");
  expect(pointValue(point, "grpo")).toBe("");
  expect(pointValue(null, K)).toBe("");
});

test("a column has the last part of its key, unless two would be called the same", () => {
  expect(keyTitle(K, [K, "seed"])).toBe("draft_length");
  expect(keyTitle("a.kind", ["a.kind", "b.kind"])).toBe("a.kind");
});

function run(fields: Partial<RunSummary>): RunSummary {
  const base = { id: "1", name: "a run", status: "running", status_reason: "", step: 3, num_steps: 9 };
  const figures = { reward: null, acceptance_length: 2.5, generation_speedup: 1.75 };
  return { ...base, ...figures, job: "grpo", stage: null, sweep_point: { [K]: 3 }, ...fields } as RunSummary;
}

test("each run stands with its point and what came of it", () => {
  const html = renderToStaticMarkup(
    <MemoryRouter>
      <SweepTable sweep={{ keys: [K], runs: [run({ name: "k=3" })] }} />
    </MemoryRouter>,
  );
  expect(html).toContain('<a href="/runs/1" data-discover="true">k=3</a>');
  expect(html).toContain(`title="${K}">draft_length</th>`);
  for (const shown of [">3</td>", "2.50", "1.75×", "Running"]) expect(html).toContain(shown);
});

test("only a run that waits has a place in the queue", () => {
  const place = (fields: Partial<RunSummary>) => renderToStaticMarkup(<QueuePlace run={run(fields)} />);
  expect(place({ status: "queued", queue_position: 1, priority: 0 })).toContain("Next in the queue<");
  expect(place({ status: "queued", queue_position: 4, priority: -5 })).toContain(
    "Place 4 in the queue, priority -5<",
  );
  expect(place({ status: "running", queue_position: 4, priority: 0 })).toBe("");
});
