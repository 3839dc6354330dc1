import { createContext } from "react";
import type { Columns } from "../series/columns.ts";
import { onAxis } from "./axis.ts";
import type { Figure } from "./binding.ts";

/** A step of the run that every chart points out. */
export interface Mark {
  step: number;
  title: string;
}

export const MarksContext = createContext<Mark[]>([]);

/** Name of the shapes, by which the theme gives them their colour. */
export const ALARM_MARK = "alarm";

/** Draws a line at each mark. On an axis other than steps `scale` says where the step is; null while it is unknown. */
export function withMarks(figure: Figure, marks: Mark[], scale?: Columns | null): Figure {
  if (marks.length === 0) return figure;
  const ascending = marks.toSorted((a, b) => a.step - b.step);
  const places = placesOf(ascending, scale);
  const placed = ascending.flatMap(({ title }, index) => {
    const x = places.get(index);
    return x === undefined ? [] : [{ x, title }];
  });
  const others = (figure.layout.shapes as object[] | undefined) ?? [];
  const shapes = [...others, ...placed.map(({ x }) => lineAt(x))];
  return { ...figure, layout: { ...figure.layout, shapes, annotations: placed.map(titleAt) } };
}

/** x by the mark's index, for marks in ascending order; one outside the known steps has none. */
function placesOf(marks: Mark[], scale: Columns | null | undefined): Map<number, number> {
  const x = marks.map(({ step }) => step);
  if (scale === undefined) return new Map(x.entries());
  const trace = { meta: { series: "" }, x, y: [...x.keys()] };
  const moved = onAxis({ data: [trace], layout: {} }, scale ?? undefined).data[0];
  return new Map((moved?.x ?? []).map((place, index) => [moved?.y?.[index] ?? index, place]));
}

function lineAt(x: number) {
  const ends = { xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1 };
  return { name: ALARM_MARK, type: "line", ...ends, line: { width: 1, dash: "dot" }, layer: "below" };
}

/** Upright beside its line, over whatever the figure draws there. */
function titleAt({ x, title }: { x: number; title: string }) {
  const place = { xref: "x", yref: "paper", x, y: 1, xanchor: "left", yanchor: "top", xshift: 1 };
  return { name: ALARM_MARK, text: title, ...place, textangle: -90, showarrow: false, borderpad: 1 };
}
