import { formatNumber } from "../format/number.ts";
import type { Figure, Trace } from "./binding.ts";

interface Column {
  id: string;
  name: string;
  at: Map<number, number | null>;
}

/** A bound figure as a table, newest first: one row per x, one column per visible trace. */
export function ChartTable({ figure, xTitle }: { figure: Figure; xTitle: string }) {
  const traces = figure.data.filter((trace) => trace.meta && (trace.x?.length ?? 0) > 0);
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
              <th scope="row">{formatNumber(x)}</th>
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

function columnOf(trace: Trace, index: number): Column {
  const name = trace.name ?? trace.meta?.series ?? "";
  return {
    id: `${index} ${name}`,
    name,
    at: new Map((trace.x ?? []).map((x, i) => [x, trace.y?.[i] ?? null])),
  };
}
