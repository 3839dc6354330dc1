/**
 * How a figure's template takes up data: the contract is written in backend/figures/__init__.py, and both sides are
 * tested against contract/figure_binding_cases.json.
 */
import type { Columns } from "../series/columns.ts";

export interface TraceMeta {
  series?: string;
  last_of?: string[];
  field?: "value" | "min" | "max";
  times_series?: string;
  power?: number;
  factor?: number;
  offset?: number;
  is_main?: boolean;
}

export interface Trace {
  meta?: TraceMeta;
  name?: string;
  type?: string;
  visible?: boolean | "legendonly";
  x?: number[];
  y?: (number | null)[];
  line?: Record<string, unknown>;
  marker?: Record<string, unknown>;
  [key: string]: unknown;
}

export interface Figure {
  data: Trace[];
  layout: Record<string, unknown>;
}

/** The columns that binding reads; a series that is unknown is undefined. */
export type Lookup = (name: string) => Pick<Columns, "step" | "value" | "min" | "max"> | undefined;

/** Names of all series that the traces need, each once. */
export function seriesNames(figure: Figure): string[] {
  const names = figure.data.flatMap(({ meta }) =>
    meta ? [meta.series, meta.times_series, ...(meta.last_of ?? [])] : [],
  );
  return [...new Set(names.filter((name) => name !== undefined))];
}

/** The template with the data of one run. The template itself stays as it was. */
export function bind(template: Figure, lookup: Lookup): Figure {
  return { data: template.data.map((trace) => bindTrace(trace, lookup)), layout: template.layout };
}

function bindTrace(trace: Trace, lookup: Lookup): Trace {
  if (!trace.meta) return trace;
  const { x, y } = points(trace.meta, lookup);
  return { ...trace, x, y, visible: x.length > 0 };
}

function points(meta: TraceMeta, lookup: Lookup): { x: number[]; y: (number | null)[] } {
  if (meta.last_of) return lastPoints(meta, meta.last_of, lookup);
  const columns = lookup(meta.series ?? "");
  const empty = { x: [], y: [] };
  if (!columns) return empty;
  const values = columns[meta.field ?? "value"];
  if (!meta.times_series)
    return { x: [...columns.step], y: values.map((value) => transform(meta, value, 1)) };
  const other = lookup(meta.times_series);
  if (!other) return empty;
  const others = new Map(other.step.map((step, index) => [step, other.value[index] ?? null]));
  const kept = columns.step.flatMap((step, index) => (others.has(step) ? [{ step, index }] : []));
  return {
    x: kept.map(({ step }) => step),
    y: kept.map(({ step, index }) => transform(meta, values[index] ?? null, others.get(step) ?? null)),
  };
}

function lastPoints(meta: TraceMeta, names: string[], lookup: Lookup): { x: number[]; y: (number | null)[] } {
  const lasts = names.map((name) => lookup(name)?.value.findLast((value) => value !== null) ?? null);
  const kept = lasts.flatMap((value, index) => (value === null ? [] : [{ x: index + 1, value }]));
  return { x: kept.map(({ x }) => x), y: kept.map(({ value }) => transform(meta, value, 1)) };
}

/** factor * (value ** power * other) + offset; null for what is missing or not finite. */
function transform(meta: TraceMeta, value: number | null, other: number | null): number | null {
  if (value === null || other === null) return null;
  const { power = 1, factor = 1, offset = 0 } = meta;
  const result = factor * (value ** power * other) + offset;
  return Number.isFinite(result) ? result : null;
}

/** Whether any trace has a point to show. */
export function hasPoints(figure: Figure): boolean {
  return figure.data.some((trace) => trace.meta && (trace.x?.length ?? 0) > 0);
}
