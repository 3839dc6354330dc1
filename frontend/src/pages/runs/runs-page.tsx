import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { type RunFilter, runsQuery } from "../../api/queries.ts";
import { Page } from "../../design/page.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { RunTable } from "./run-table.tsx";
import { useFilter } from "./use-filter.ts";
import { useLiveRuns } from "./use-live-runs.ts";

export function RunsPage() {
  const [filter, setFilter] = useFilter();
  const runs = useInfiniteQuery(runsQuery(filter));
  useLiveRuns();
  const items = runs.data?.pages.flatMap((page) => page.items) ?? [];
  const launch = (
    <Link className="button button-primary" to="/launch">
      Launch a run
    </Link>
  );
  return (
    <Page title="Runs" actions={launch}>
      <FilterBar filter={filter} onChange={setFilter} />
      {runs.isPending && <Waiting>Fetching the runs.</Waiting>}
      {runs.error && <ProblemNote error={runs.error} onRetry={() => runs.refetch()} />}
      {runs.data && items.length === 0 && (
        <NoRuns filter={filter} onClear={() => setFilter({ status: [], search: "", project: "" })} />
      )}
      {items.length > 0 && <RunTable runs={items} />}
      {runs.hasNextPage && (
        <button
          type="button"
          className="button more"
          onClick={() => runs.fetchNextPage()}
          disabled={runs.isFetchingNextPage}
        >
          {runs.isFetchingNextPage ? "Fetching older runs" : "Show older runs"}
        </button>
      )}
    </Page>
  );
}

function NoRuns({ filter, onClear }: { filter: RunFilter; onClear: () => void }) {
  if (filter.status.length > 0 || filter.search || filter.project) {
    return (
      <Empty title="No run matches.">
        <button type="button" className="button" onClick={onClear}>
          Show all runs
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No runs yet.">
      <p>
        Fill in the <Link to="/launch">launch form</Link>, or send one of the example configurations from a
        shell:
      </p>
      <pre>foredeck launch examples/arithmetic-eagle3.yaml --wait</pre>
    </Empty>
  );
}
