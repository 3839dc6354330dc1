import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import type { RunRead, Schemas } from "../../api/client.ts";
import { figuresQuery } from "../../api/queries.ts";
import { AXES, type AxisKind } from "../../charts/axis.ts";
import { Chart, type ChartView } from "../../charts/chart.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { useSeriesError } from "../../series/use-series.ts";
import { expectedCharts } from "./expected-charts.ts";

type FigureRead = Schemas["FigureRead"];

/** What moves during set-up stands first until training begins; draft training is nothing else. */
const SET_UP_GROUP = "Set-up";

export function ChartsTab({ run }: { run: RunRead }) {
  const figures = useQuery(figuresQuery);
  const isSettingUp = run.step === 0 && !run.is_ended;
  const isSetUpOnly = run.job === "draft_training";
  const [view, setView] = useView();
  if (figures.error) return <ProblemNote error={figures.error} onRetry={() => figures.refetch()} />;
  if (!figures.data) return <Waiting>Fetching the list of charts.</Waiting>;
  const shown = expectedCharts(figures.data.figures, run);
  return (
    <>
      {shown.length === 0 && (
        <Empty title="Nothing was measured.">
          <p className="muted">The run ended before that. Its log says how far it came.</p>
        </Empty>
      )}
      <ViewBar view={view} hasAxes={!isSetUpOnly} onChange={setView} />
      <SeriesNote />
      {grouped(shown, isSettingUp ? SET_UP_GROUP : null).map(({ group, items }) => (
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

interface ViewBarProps {
  view: ChartView;
  /** Charts of the set-up count steps of their own and stay on them. */
  hasAxes: boolean;
  onChange: (view: ChartView) => void;
}

function ViewBar({ view, hasAxes, onChange }: ViewBarProps) {
  return (
    <div className="view-bar">
      {hasAxes && (
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
      )}
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
