import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useContext, useMemo, useRef, useState } from "react";
import { templateQuery } from "../api/queries.ts";
import { ChartIcon, TableIcon } from "../design/icons.tsx";
import { ProblemNote } from "../design/states.tsx";
import { useSeries } from "../series/use-series.ts";
import { AXES, type AxisKind, onAxis } from "./axis.ts";
import { bind, type Figure, hasPoints, seriesNames } from "./binding.ts";
import { ChartTable } from "./chart-table.tsx";
import { useInView } from "./in-view.ts";
import { withoutCrowding } from "./markers.ts";
import { MarksContext, withMarks } from "./marks.ts";
import { smoothed } from "./smoothing.ts";
import { themedLayout, useChartTheme } from "./theme.ts";

/** plotly.js is most of the dashboard's code and comes with the first chart. */
const Plot = lazy(() => import("./plot.tsx"));

export interface ChartView {
  axis: AxisKind;
  smoothing: number;
}

interface ChartProps {
  name: string;
  title: string;
  description: string;
  series: string[];
  view: ChartView;
}

/**
 * One chart of a run. It is mounted when it first comes near the screen, and its series are followed only while it is
 * there. It stays mounted afterwards, so that zoom and hidden lines are still there when the reader scrolls back.
 */
export function Chart({ name, title, description, series, view }: ChartProps) {
  const card = useRef<HTMLElement>(null);
  const isInView = useInView(card);
  const [wasSeen, setSeen] = useState(false);
  if (isInView && !wasSeen) setSeen(true);
  const [isTable, setTable] = useState(false);
  return (
    <section className="card chart" ref={card} aria-label={title}>
      <div className="card-head">
        <h3 title={description}>{title}</h3>
        <button
          type="button"
          className="icon-button"
          aria-pressed={isTable}
          aria-label={isTable ? `Show ${title} as a chart` : `Show ${title} as a table`}
          title={isTable ? "As a chart" : "As a table"}
          onClick={() => setTable(!isTable)}
        >
          {isTable ? <ChartIcon /> : <TableIcon />}
        </button>
      </div>
      <div className="chart-body">
        {wasSeen && (
          <ChartBody
            name={name}
            title={title}
            series={series}
            view={view}
            isTable={isTable}
            isInView={isInView}
          />
        )}
      </div>
    </section>
  );
}

type BodyProps = Omit<ChartProps, "description"> & { isTable: boolean; isInView: boolean };

function ChartBody({ name, title, series, view, isTable, isInView }: BodyProps) {
  const template = useQuery(templateQuery(name));
  const figure = useFigure(template.data, series, view, isInView);
  const theme = useChartTheme();
  const hasOwnAxis = template.data ? isOnStepAxis(template.data) : false;
  const xTitle = hasOwnAxis ? AXES[view.axis].title : null;
  const layout = useMemo(() => figure && themedLayout(figure, theme, xTitle), [figure, theme, xTitle]);
  if (template.error) return <ProblemNote error={template.error} onRetry={() => template.refetch()} />;
  if (!figure || !layout) return null;
  if (!hasPoints(figure)) return <p className="chart-empty muted">{emptyWords(figure)}</p>;
  if (isTable) return <ChartTable figure={figure} xTitle={xTitle ?? ownXTitle(figure)} />;
  return (
    <Suspense fallback={<p className="chart-empty muted">Fetching the chart library.</p>}>
      <Plot data={figure.data} layout={layout} label={title} />
    </Suspense>
  );
}

/** The template bound to what the store knows, on the chosen axis, smoothed. */
function useFigure(
  template: Figure | undefined,
  listed: string[],
  view: ChartView,
  isInView: boolean,
): Figure | null {
  const isMovable = template ? isOnStepAxis(template) : false;
  const scaleName = isMovable ? AXES[view.axis].series : null;
  const names = [...new Set([...listed, ...(template ? seriesNames(template) : [])])];
  const lookup = useSeries(scaleName ? [...names, scaleName] : names, isInView);
  const known = [...names, scaleName ?? ""].map(lookup);
  const marks = useContext(MarksContext);
  const [shown, setShown] = useState(known);
  if (isInView && !isSame(shown, known)) setShown(known);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the lookup's answers change with what is shown.
  return useMemo(() => {
    if (!template) return null;
    const bound = bind(template, lookup);
    const marked = isMovable
      ? withMarks(bound, marks, scaleName ? (lookup(scaleName) ?? null) : undefined)
      : bound;
    const placed = scaleName ? onAxis(marked, lookup(scaleName)) : marked;
    return withoutCrowding(smoothed(placed, view.smoothing));
  }, [template, shown, scaleName, view.smoothing, marks]);
}

/** Whether nothing of what a chart shows has changed, so that it need not be drawn again. */
function isSame(a: unknown[], b: unknown[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}

/** Warm-up and draft training count steps of their own, which have no place among the run's tokens and time. */
function isOnStepAxis(template: Figure): boolean {
  return !seriesNames(template).some((name) => /^(warm_up|draft_pretraining)\//.test(name));
}

function ownXTitle(figure: Figure): string {
  const axis = figure.layout.xaxis as { title?: { text?: string } } | undefined;
  return axis?.title?.text ?? "step";
}

function emptyWords(figure: Figure): string {
  const meta = figure.layout.meta as { empty?: string } | undefined;
  return meta?.empty ?? "Appears with the first measurement.";
}
