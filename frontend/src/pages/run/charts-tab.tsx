import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import type { Schemas } from "../../api/client.ts";
import { figuresQuery } from "../../api/queries.ts";
import { AXES, type AxisKind } from "../../charts/axis.ts";
import { Chart, type ChartView } from "../../charts/chart.tsx";
import { ProblemNote, Waiting } from "../../design/states.tsx";
import { useSeriesError } from "../../series/use-series.ts";

type FigureRead = Schemas["FigureRead"];

/** What moves during set-up stands first until training begins. */
const SET_UP_GROUP = "Set-up";

export function ChartsTab({ isSettingUp }: { isSettingUp: boolean }) {
  const figures = useQuery(figuresQuery);
  const [view, setView] = useView();
  if (figures.error) return <ProblemNote error={figures.error} onRetry={() => figures.refetch()} />;
  if (!figures.data) return <Waiting>Fetching the list of charts.</Waiting>;
  return (
    <>
      <ViewBar view={view} onChange={setView} />
      <SeriesNote />
      {grouped(figures.data.figures, isSettingUp ? SET_UP_GROUP : null).map(({ group, items }) => (
        <section key={group} className="chart-group">
          <h2>{group}</h2>
          <div className="charts">
            {items.map(({ name, title, description, series }) => (
              <Chart
                key={name}
                name={name}
                title={title}
                description={description}
                series={series}
                view={view}
              />
            ))}
          </div>
        </section>
      ))}
    </>
  );
}

function SeriesNote() {
  const error = useSeriesError();
  if (!error) return null;
  return (
    <p className="stream-note" role="status">
      The charts could not be brought up to date and are tried again every 2 s. {error.message}
    </p>
  );
}

/** Groups in the order of their first chart, one of them put before all others. */
function grouped(figures: FigureRead[], first: string | null): { group: string; items: FigureRead[] }[] {
  const names = [...new Set(figures.map(({ group }) => group))];
  const groups = names.sort((a, b) => Number(b === first) - Number(a === first));
  return groups.map((group) => ({ group, items: figures.filter((figure) => figure.group === group) }));
}

/** Axis and smoothing, kept in the address so that a view can be shared. */
function useView(): [ChartView, (view: ChartView) => void] {
  const [params, setParams] = useSearchParams();
  const asked = params.get("x") ?? "step";
  const smoothing = Number(params.get("smoothing") ?? 0);
  const view: ChartView = {
    axis: asked in AXES ? (asked as AxisKind) : "step",
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
  };
  const change = ({ axis, smoothing: weight }: ChartView) => {
    const next = new URLSearchParams(params);
    if (axis === "step") next.delete("x");
    else next.set("x", axis);
    if (weight === 0) next.delete("smoothing");
    else next.set("smoothing", String(weight));
    setParams(next, { replace: true, preventScrollReset: true });
  };
  return [view, change];
}

function ViewBar({ view, onChange }: { view: ChartView; onChange: (view: ChartView) => void }) {
  return (
    <div className="view-bar">
      <fieldset className="segments">
        <legend>Horizontal axis</legend>
        {(Object.keys(AXES) as AxisKind[]).map((axis) => (
          <button
            key={axis}
            type="button"
            aria-pressed={axis === view.axis}
            onClick={() => onChange({ ...view, axis })}
          >
            {AXES[axis].label}
          </button>
        ))}
      </fieldset>
      <label className="smoothing">
        Smoothing
        <input
          type="range"
          min="0"
          max="0.95"
          step="0.05"
          value={view.smoothing}
          onChange={(event) => onChange({ ...view, smoothing: Number(event.target.value) })}
        />
        <output>{view.smoothing.toFixed(2)}</output>
      </label>
    </div>
  );
}
