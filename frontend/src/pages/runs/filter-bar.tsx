import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { RunStatus } from "../../api/client.ts";
import { projectsQuery, type RunFilter } from "../../api/queries.ts";

const CHOICES: { name: string; statuses: RunStatus[] }[] = [
  { name: "All", statuses: [] },
  { name: "Active", statuses: ["queued", "dispatching", "running", "lost"] },
  { name: "Succeeded", statuses: ["succeeded"] },
  { name: "Failed", statuses: ["failed"] },
  { name: "Stopped", statuses: ["stopped"] },
];

const TYPING_PAUSE_MS = 250;

export function FilterBar({
  filter,
  onChange,
}: {
  filter: RunFilter;
  onChange: (filter: RunFilter) => void;
}) {
  const chosen = filter.status.join(",");
  return (
    <search className="filter-bar">
      <fieldset className="segments">
        <legend className="visually-hidden">Status</legend>
        {CHOICES.map(({ name, statuses }) => (
          <button
            key={name}
            type="button"
            aria-pressed={statuses.join(",") === chosen}
            onClick={() => onChange({ ...filter, status: statuses })}
          >
            {name}
          </button>
        ))}
      </fieldset>
      <ProjectField project={filter.project} onChange={(project) => onChange({ ...filter, project })} />
      <SearchField search={filter.search} onSearch={(search) => onChange({ ...filter, search })} />
    </search>
  );
}

/** For those who see several projects. */
function ProjectField({ project, onChange }: { project: string; onChange: (project: string) => void }) {
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

function SearchField({ search, onSearch }: { search: string; onSearch: (search: string) => void }) {
  const [text, setText] = useState(search);
  const latest = useRef(onSearch);
  useEffect(() => {
    latest.current = onSearch;
  });
  useEffect(() => setText(search), [search]);
  useEffect(() => {
    if (text === search) return;
    const timer = setTimeout(() => latest.current(text), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, search]);
  return (
    <input
      type="search"
      className="input"
      aria-label="Search by name, notes or id"
      placeholder="Search name, notes or id"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}
