import { useSyncExternalStore } from "react";
import type { Figure } from "./binding.ts";
import { ALARM_MARK } from "./marks.ts";

/** The page's colours as plotly.js needs them: resolved, since it paints into SVG attributes. */
export interface ChartTheme {
  text: string;
  muted: string;
  grid: string;
  line: string;
  surface: string;
  alarm: string;
  font: string;
}

function resolveColour(variable: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function readTheme(): ChartTheme {
  return {
    text: resolveColour("--text"),
    muted: resolveColour("--muted"),
    grid: resolveColour("--grid"),
    line: resolveColour("--line-strong"),
    surface: resolveColour("--surface"),
    alarm: resolveColour("--failed"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

let current: ChartTheme | null = null;

function subscribe(listener: () => void): () => void {
  const changed = () => {
    current = null;
    listener();
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const choice = new MutationObserver(changed);
  system.addEventListener("change", changed);
  choice.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", changed);
    choice.disconnect();
  };
}

function snapshot(): ChartTheme {
  current ??= readTheme();
  return current;
}

export function useChartTheme(): ChartTheme {
  return useSyncExternalStore(subscribe, snapshot);
}

type Part = Record<string, unknown>;

/** The figure's layout in the page's colours and for the space it has. Ranges and titles stay the figure's own. */
export function themedLayout(figure: Figure, theme: ChartTheme, xTitle: string | null): Part {
  const { layout } = figure;
  const axes = Object.entries(layout).filter(([key]) => /^[xy]axis\d*$/.test(key));
  const themed = axes.map(([key, axis]) => [
    key,
    themedAxis(axis as Part, theme, key.startsWith("x") ? xTitle : null),
  ]);
  return {
    ...layout,
    ...Object.fromEntries(themed),
    shapes: ((layout.shapes as Part[] | undefined) ?? []).map((shape) => themedShape(shape, theme)),
    annotations: ((layout.annotations as Part[] | undefined) ?? []).map((one) => themedNote(one, theme)),
    title: undefined,
    autosize: true,
    width: undefined,
    height: undefined,
    margin: { l: 48, r: 12, t: 28, b: 40 },
    font: { family: theme.font, size: 12, color: theme.muted },
    hoverlabel: {
      bgcolor: theme.surface,
      bordercolor: theme.line,
      font: { color: theme.text, family: theme.font },
    },
    legend: { ...(layout.legend as Part), bgcolor: "rgba(0,0,0,0)", font: { color: theme.muted, size: 12 } },
  };
}

/** Marks of alarms have the colour of failure; other lines keep their own. */
function themedShape(shape: Part, theme: ChartTheme): Part {
  if (shape.name !== ALARM_MARK) return shape;
  return { ...shape, line: { ...(shape.line as Part), color: theme.alarm } };
}

/** Legible over lines, which stay in sight behind it. */
function themedNote(note: Part, theme: ChartTheme): Part {
  const veil = theme.surface.replace(/^rgb\((.*)\)$/, "rgba($1, 0.7)");
  return { ...note, font: { color: theme.alarm, size: 10 }, bgcolor: veil };
}

function themedAxis(axis: Part, theme: ChartTheme, title: string | null): Part {
  const given = axis.title as Part | undefined;
  return {
    ...axis,
    gridcolor: theme.grid,
    linecolor: theme.line,
    tickcolor: theme.line,
    zerolinecolor: theme.grid,
    tickfont: { color: theme.muted, size: 11 },
    title: { ...given, text: title ?? given?.text, font: { color: theme.muted, size: 12 }, standoff: 6 },
  };
}
