import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { projectsQuery, sweepsQuery } from "../../api/queries.ts";
import { Page } from "../../design/page.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { type BestBy, FIGURES } from "./figures.ts";
import { SweepList } from "./sweep-list.tsx";
import "./sweeps.css";

const USUAL: BestBy = "reward";

/** Runs that were launched together to compare values of some keys. */
export function SweepsPage() {
  const [params, setParams] = useSearchParams();
  const asked = params.get("best") ?? USUAL;
  const bestBy = asked in FIGURES ? (asked as BestBy) : USUAL;
  const project = params.get("project") ?? "";
  const sweeps = useInfiniteQuery(sweepsQuery({ project, bestBy }));
  const items = sweeps.data?.pages.flatMap((page) => page.items) ?? [];
  const change = (name: string, value: string) => {
    const next = new URLSearchParams(params);
    if (value) next.set(name, value);
    else next.delete(name);
    setParams(next, { replace: true });
  };
  return (
    <Page title="Sweeps">
      <div className="filter-bar">
        <label className="sweeps-by">
          <span className="muted">Best by</span>
          <select
            className="input"
            value={bestBy}
            onChange={({ target }) => change("best", target.value === USUAL ? "" : target.value)}
          >
            {Object.entries(FIGURES).map(([name, { words }]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <ProjectChoice project={project} onChange={(name) => change("project", name)} />
      </div>
      {sweeps.isPending && <Waiting>Fetching the sweeps.</Waiting>}
      {sweeps.error && <ProblemNote error={sweeps.error} onRetry={() => sweeps.refetch()} />}
      {sweeps.data && items.length === 0 && (
        <NoSweeps project={project} onClear={() => change("project", "")} />
      )}
      {items.length > 0 && <SweepList sweeps={items} bestBy={bestBy} />}
      {sweeps.hasNextPage && (
        <button
          type="button"
          className="button more"
          onClick={() => sweeps.fetchNextPage()}
          disabled={sweeps.isFetchingNextPage}
        >
          {sweeps.isFetchingNextPage ? "Fetching older sweeps" : "Show older sweeps"}
        </button>
      )}
    </Page>
  );
}

/** For those who see several projects. */
function ProjectChoice({ project, onChange }: { project: string; onChange: (project: string) => void }) {
  const names = useQuery(projectsQuery).data?.map(({ name }) => name) ?? [];
  if (names.length < 2 && !project) return null;
  const choices = !project || names.includes(project) ? names : [project, ...names];
  return (
    <select
      className="input"
      aria-label="Project"
      value={project}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">All projects</option>
      {choices.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

function NoSweeps({ project, onClear }: { project: string; onClear: () => void }) {
  if (project) {
    return (
      <Empty title={`No sweep in ${project}.`}>
        <button type="button" className="button" onClick={onClear}>
          Show all sweeps
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No sweeps yet.">
      <p>A sweep launches a run for each value of some keys, and compares what came of them:</p>
      <pre>foredeck sweep create lengths --example arithmetic-eagle3 --axis drafter.draft_length=[1,3,5]</pre>
    </Empty>
  );
}
