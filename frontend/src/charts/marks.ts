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
  const shapes = ascending.flatMap(({ title }, index) => {
    const x = places.get(index);
    return x === undefined ? [] : [lineAt(x, title)];
  });
  const others = (figure.layout.shapes as object[] | undefined) ?? [];
  return { ...figure, layout: { ...figure.layout, shapes: [...others, ...shapes] } };
}

/** x by the mark's index, for marks in ascending order; one outside the known steps has none. */
function placesOf(marks: Mark[], scale: Columns | null | undefined): Map<number, number> {
  const x = marks.map(({ step }) => step);
  if (scale === undefined) return new Map(x.entries());
  const trace = { meta: { series: "" }, x, y: [...x.keys()] };
  const moved = onAxis({ data: [trace], layout: {} }, scale ?? undefined).data[0];
  return new Map((moved?.x ?? []).map((place, index) => [moved?.y?.[index] ?? index, place]));
}

function lineAt(x: number, title: string) {
  return {
    name: ALARM_MARK,
    type: "line",
    xref: "x",
    yref: "paper",
    x0: x,
    x1: x,
    y0: 0,
    y1: 1,
    line: { width: 1, dash: "dot" },
    label: { text: title, textposition: "end", textangle: -90, xanchor: "right", yanchor: "top", padding: 2 },
  };
}
