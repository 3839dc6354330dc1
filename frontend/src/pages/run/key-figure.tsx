import type { ReactNode } from "react";
import { Sparkline } from "../../charts/sparkline.tsx";
import { formatChange } from "../../format/number.ts";
import { type Columns, firstValue, latestValue } from "../../series/columns.ts";

interface KeyFigureProps {
  title: string;
  value: ReactNode;
  suffix?: string;
  course: Columns | undefined;
  colour: string;
  hint: string;
  explanation?: string;
  hasChange?: boolean;
}

/** One big number with its course and what it says. */
export function KeyFigure({
  title,
  value,
  suffix,
  course,
  colour,
  hint,
  explanation,
  hasChange = true,
}: KeyFigureProps) {
  const change = hasChange ? changeOf(course) : null;
  return (
    <section className="key-figure" title={explanation}>
      <h2>{title}</h2>
      <div className="key-value">
        <span className="big">{value}</span>
        {suffix && <span className="muted">{suffix}</span>}
        {change !== null && <span className="change">{formatChange(change)} since start</span>}
      </div>
      <Sparkline columns={course} colour={colour} />
      <p className="muted small">{hint || " "}</p>
    </section>
  );
}

export function changeOf(columns: Columns | undefined): number | null {
  const [first, last] = [firstValue(columns), latestValue(columns)];
  return first === null || last === null || (columns?.step.length ?? 0) < 2 ? null : last - first;
}
