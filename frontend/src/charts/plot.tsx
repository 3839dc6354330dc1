import type { Config } from "plotly.js/lib/core";
import { useEffect, useRef } from "react";
import { cancelDraw, enqueueDraw } from "./draw-queue.ts";
import { Plotly } from "./plotly.ts";

const CONFIG: Partial<Config> = {
  displaylogo: false,
  responsive: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  toImageButtonOptions: { format: "svg" },
};

/** A drawn chart. It is updated in place, so that zoom, legend and hover survive. */
export default function Plot({ data, layout, label }: { data: object[]; layout: object; label: string }) {
  const element = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const target = element.current;
    if (!target) return;
    enqueueDraw(target, () => void Plotly.react(target, data, layout, CONFIG));
  }, [data, layout]);

  useEffect(() => {
    const target = element.current;
    if (!target) return;
    const observer = new ResizeObserver(() => {
      const isDrawn = target.classList.contains("js-plotly-plot");
      if (isDrawn && target.isConnected && target.offsetWidth > 0) void Plotly.Plots.resize(target);
    });
    observer.observe(target);
    return () => {
      observer.disconnect();
      cancelDraw(target);
      Plotly.purge(target);
    };
  }, []);

  return <div ref={element} className="plot" role="img" aria-label={label} />;
}
