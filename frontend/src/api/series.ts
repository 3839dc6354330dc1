import type { SeriesSource } from "../series/store.ts";
import { api, type Schemas, unwrap } from "./client.ts";

/** A chart is some 600 pixels wide; more buckets than this cost drawing time and show nothing more. */
const MAX_POINTS = 1000;

/** Where a run's series come from. */
export function seriesSource(runId: string): SeriesSource {
  const path = { run_id: runId };
  return {
    async fetchColumns(names, fromStep) {
      const query = { names: names.join(","), from_step: fromStep ?? undefined, max_points: MAX_POINTS };
      const data = await unwrap(api.GET("/api/v1/runs/{run_id}/series/data", { params: { path, query } }));
      return data.series.map((series) => ({
        name: series.name,
        columns: columnsOf(series, data.bucket_width),
      }));
    },
    async fetchIndex() {
      const index = await unwrap(api.GET("/api/v1/runs/{run_id}/series", { params: { path } }));
      return index.map((s) => ({ name: s.name, lastStep: s.last_step ?? 0, numPoints: s.num_points }));
    },
  };
}

function columnsOf(series: Schemas["SeriesColumns"], bucketWidth: number) {
  const { step, value, min, max, attempt } = series;
  return { step, value, min, max, attempt, numNonFinite: series.num_non_finite, bucketWidth };
}
