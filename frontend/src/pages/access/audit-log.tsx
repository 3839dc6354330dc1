import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Schemas } from "../../api/client.ts";
import { type AuditFilter, auditQuery } from "../../api/queries.ts";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { RelativeTime } from "../../design/time.tsx";

type Entry = Schemas["AuditEntryRead"];

const FIELDS: { name: keyof AuditFilter; label: string; placeholder: string }[] = [
  { name: "actor", label: "Who", placeholder: "Who: grace" },
  { name: "action", label: "What", placeholder: "What: run.launch, or run" },
  { name: "target", label: "To what", placeholder: "To what: an id or a name" },
];

/** Who changed what, and from where, newest first. */
export function AuditLog() {
  const [filter, setFilter] = useState<AuditFilter>({});
  const entries = useInfiniteQuery(auditQuery(filter));
  const items = entries.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <section className="card">
      <h2>Audit log</h2>
      <Filter onChange={setFilter} />
      {entries.isPending && <Waiting>Fetching the audit log.</Waiting>}
      {entries.error && <ProblemNote error={entries.error} onRetry={() => entries.refetch()} />}
      {entries.data && items.length === 0 && <Empty title="No entry matches." />}
      {items.length > 0 && <AuditTable entries={items} />}
      {entries.hasNextPage && (
        <button
          type="button"
          className="button"
          onClick={() => entries.fetchNextPage()}
          disabled={entries.isFetchingNextPage}
        >
          {entries.isFetchingNextPage ? "Fetching older entries" : "Show older entries"}
        </button>
      )}
    </section>
  );
}

function Filter({ onChange }: { onChange: (filter: AuditFilter) => void }) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    onChange(Object.fromEntries(FIELDS.map(({ name }) => [name, String(form.get(name) ?? "").trim()])));
  };
  return (
    <search>
      <form className="row-form" onSubmit={submit}>
        {FIELDS.map(({ name, label, placeholder }) => (
          <input key={name} name={name} className="input" aria-label={label} placeholder={placeholder} />
        ))}
        <button type="submit" className="button">
          Filter
        </button>
      </form>
    </search>
  );
}

export function AuditTable({ entries }: { entries: Entry[] }) {
  return (
    <table className="audit-table">
      <thead>
        <tr>
          {["When", "Who", "What", "To what", "Project", "From", "More"].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <tr key={entry.id} title={entry.request_id ? `Request ${entry.request_id}` : undefined}>
            <td className="when">
              <RelativeTime time={entry.time} />
            </td>
            <td>{entry.actor}</td>
            <td className="mono what">{entry.action}</td>
            <td className="mono">{entry.target}</td>
            <td data-label="in">{entry.project}</td>
            <td data-label="from">{entry.address ?? "the service itself"}</td>
            <td className="muted">{detailText(entry.detail)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** {name: "x", scopes: ["read"]} -> "name: x, scopes: [read]" without JSON's quotes. */
export function detailText(detail: Entry["detail"]): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}
