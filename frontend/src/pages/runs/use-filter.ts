import { useSearchParams } from "react-router";
import type { RunStatus } from "../../api/client.ts";
import type { RunFilter } from "../../api/queries.ts";
import { STATUSES } from "../../design/status.tsx";

/** The list's filter, kept in the address so that it can be shared and survives going back. */
export function useFilter(): [RunFilter, (filter: RunFilter) => void] {
  const [params, setParams] = useSearchParams();
  const asked = params.get("status")?.split(",") ?? [];
  const filter = {
    status: asked.filter((status): status is RunStatus => status in STATUSES),
    search: params.get("search") ?? "",
    project: params.get("project") ?? "",
  };
  const change = ({ status, search, project }: RunFilter) => {
    const next: Record<string, string> = {};
    if (status.length > 0) next.status = status.join(",");
    if (search) next.search = search;
    if (project) next.project = project;
    setParams(next, { replace: true });
  };
  return [filter, change];
}
