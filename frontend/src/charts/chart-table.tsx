import { formatCount, formatNumber } from "../format/number.ts";
import type { Figure, Trace } from "./binding.ts";

interface Column {
  id: string;
  name: string;
  at: Map<number, number | null>;
}

/** A bound figure as a table, newest first: one row per x, one column per visible trace. */
export function ChartTable({ figure, xTitle }: { figure: Figure; xTitle: string }) {
  const filled = figure.data.filter((trace) => trace.meta && (trace.x?.length ?? 0) > 0);
  const traces = filled.filter((trace) => !isRepetition(trace, filled));
  const columns = traces.map(columnOf);
  const rows = [...new Set(traces.flatMap((trace) => trace.x ?? []))].sort((a, b) => b - a);
  return (
    <div className="chart-table">
      <table>
        <thead>
          <tr>
            <th scope="col">{xTitle}</th>
            {columns.map(({ id, name }) => (
              <th scope="col" key={id}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((x) => (
            <tr key={x}>
              <th scope="row">{Number.isInteger(x) ? formatCount(x) : formatNumber(x)}</th>
              {columns.map(({ id, at }) => (
                <td key={id}>{formatNumber(at.get(x))}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Where buckets hold one step, their extremes say nothing that their value does not. */
function isRepetition(trace: Trace, others: Trace[]): boolean {
  if (!isExtreme(trace)) return false;
  const main = others.find((other) => other.meta?.series === trace.meta?.series && !isExtreme(other));
  return main?.y?.every((y, index) => y === trace.y?.[index]) ?? false;
}

function isExtreme({ meta }: Trace): boolean {
  return meta?.field === "min" || meta?.field === "max";
}

function columnOf(trace: Trace, index: number): Column {
  const group = typeof trace.legendgroup === "string" ? trace.legendgroup : trace.meta?.series;
  const name = trace.name ?? [group, trace.meta?.field].filter(Boolean).join(", ");
  return {
    id: `${index} ${name}`,
    name,
    at: new Map((trace.x ?? []).map((x, i) => [x, trace.y?.[i] ?? null])),
  };
}
