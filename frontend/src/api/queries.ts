import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { Figure } from "../charts/binding.ts";
import type { JsonSchema } from "../forms/schema.ts";
import { api, type RunStatus, type Schemas, setCsrfToken, unwrap } from "./client.ts";
import { every } from "./every.ts";

const FOREVER = { staleTime: Number.POSITIVE_INFINITY };

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async () => {
    const session = await unwrap(api.GET("/api/v1/session"));
    setCsrfToken(session.csrf_token);
    return session;
  },
  ...FOREVER,
});

export interface RunFilter {
  status: RunStatus[];
  search: string;
  /** Name of a project; empty for all. */
  project: string;
}

export const runsKey = ["runs"] as const;

export function runsQuery(filter: RunFilter) {
  return infiniteQueryOptions({
    queryKey: [...runsKey, filter],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/runs", {
          params: {
            query: {
              limit: 50,
              cursor: pageParam,
              status: filter.status.join(",") || undefined,
              search: filter.search || undefined,
              project: filter.project || undefined,
            },
          },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: (previous) => previous,
  });
}

const ofRun = (run_id: string) => ({ params: { path: { run_id } } });

export function runQuery(runId: string) {
  return queryOptions({
    queryKey: ["run", runId],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{run_id}", ofRun(runId))),
  });
}

export const sweepsKey = ["sweeps"] as const;

/** Asked again and again while runs of one that is shown go on. */
export function sweepsQuery({
  project,
  bestBy,
}: {
  project: string;
  bestBy: Schemas["SweepBest"]["metric"];
}) {
  return infiniteQueryOptions({
    queryKey: [...sweepsKey, project, bestBy],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/sweeps", {
          params: { query: { limit: 50, cursor: pageParam, project: project || undefined, best_by: bestBy } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: (previous) => previous,
    refetchInterval: (query) => {
      const items = query.state.data?.pages.flatMap((page) => page.items) ?? [];
      return items.every((sweep) => sweep.is_ended) ? 15_000 : 4_000;
    },
  });
}

/** Asked again and again until all its runs have ended. */
export function sweepQuery(sweepId: string) {
  return queryOptions({
    queryKey: ["sweep", sweepId],
    queryFn: () => unwrap(api.GET("/api/v1/sweeps/{sweep_id}", { params: { path: { sweep_id: sweepId } } })),
    refetchInterval: (query) => (query.state.data?.is_ended ? false : 4_000),
  });
}

/** Asked again when the number of active ones changes: a new attempt undoes alarms without a word about each. */
export function alarmsQuery(runId: string, numActive: number) {
  return queryOptions({
    queryKey: ["alarms", runId, numActive],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{run_id}/alarms", ofRun(runId))),
    placeholderData: (previous) => previous,
  });
}

export const figuresQuery = queryOptions({
  queryKey: ["figures"],
  queryFn: () => unwrap(api.GET("/api/v1/figures")),
  ...FOREVER,
});

export function templateQuery(name: string) {
  return queryOptions({
    queryKey: ["figures", name],
    queryFn: async () =>
      (await unwrap(api.GET("/api/v1/figures/{name}", { params: { path: { name } } }))) as unknown as Figure,
    ...FOREVER,
  });
}

export function samplesQuery(runId: string, step: number | null) {
  return queryOptions({
    queryKey: ["samples", runId, step],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/samples", {
          params: { path: { run_id: runId }, query: { step: step ?? undefined, limit: 16 } },
        }),
      ),
    placeholderData: (previous) => previous,
  });
}

export function configYamlQuery(runId: string) {
  return queryOptions({
    queryKey: ["config-yaml", runId],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/runs/{run_id}/config.yaml", { ...ofRun(runId), parseAs: "text" }),
      ) as Promise<string>,
    ...FOREVER,
  });
}

export const schemaQuery = queryOptions({
  queryKey: ["run-config", "schema"],
  queryFn: async () => (await unwrap(api.GET("/api/v1/run-config/schema"))) as JsonSchema,
  ...FOREVER,
});

export const examplesQuery = queryOptions({
  queryKey: ["run-config", "examples"],
  queryFn: () => unwrap(api.GET("/api/v1/run-config/examples")),
  ...FOREVER,
});

export const clustersQuery = queryOptions({
  queryKey: ["clusters"],
  queryFn: () => unwrap(api.GET("/api/v1/clusters")),
});

/** Who uses a cluster and who waits for it, of the runs that the reader may see. */
export function clusterSharesQuery(name: string) {
  return queryOptions({
    queryKey: [...clustersQuery.queryKey, name, "shares"],
    queryFn: () => unwrap(api.GET("/api/v1/clusters/{name}/shares", { params: { path: { name } } })),
  });
}

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: () => every((query) => unwrap(api.GET("/api/v1/webhooks", { params: { query } }))),
});

export function deliveriesQuery(webhookId: string) {
  return infiniteQueryOptions({
    queryKey: ["deliveries", webhookId],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/webhooks/{webhook_id}/deliveries", {
          params: { path: { webhook_id: webhookId }, query: { limit: 20, cursor: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
}

/** Those in which the reader has a role. */
export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: () => every((query) => unwrap(api.GET("/api/v1/projects", { params: { query } }))),
});

export function membersQuery(project: string) {
  return queryOptions({
    queryKey: [...projectsQuery.queryKey, project, "members"],
    queryFn: () => unwrap(api.GET("/api/v1/projects/{project}/members", { params: { path: { project } } })),
  });
}

export const usersQuery = queryOptions({
  queryKey: ["users"],
  queryFn: () => every((query) => unwrap(api.GET("/api/v1/users", { params: { query } }))),
});

export interface AuditFilter {
  actor?: string;
  action?: string;
  target?: string;
}

export function auditQuery(filter: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: ["audit", filter],
    queryFn: ({ pageParam }) => {
      const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
      return unwrap(api.GET("/api/v1/audit", { params: { query: { ...given, cursor: pageParam } } }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
}

/** How people log in here; for the login page, which nobody needs to be known for. */
export const loginMethodsQuery = queryOptions({
  queryKey: ["login"],
  queryFn: () => unwrap(api.GET("/api/v1/login")),
  ...FOREVER,
});

export const tokensQuery = queryOptions({
  queryKey: ["tokens"],
  queryFn: () => every((query) => unwrap(api.GET("/api/v1/tokens", { params: { query } }))),
});

/** Fills in all defaults; throws an ApiProblem that names every field that is wrong. */
export async function validateConfig(config: Record<string, unknown>, signal?: AbortSignal) {
  return unwrap(
    api.POST("/api/v1/run-config/validate", { body: { config: config as Schemas["RunConfig"] }, signal }),
  );
}
