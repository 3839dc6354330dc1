import { useEffect, useRef, useState } from "react";
import type { RunStatus } from "../../api/client.ts";
import type { RunFilter } from "../../api/queries.ts";

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
      <SearchField search={filter.search} onSearch={(search) => onChange({ ...filter, search })} />
    </search>
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
