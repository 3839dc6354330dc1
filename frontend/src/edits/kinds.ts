import { api, type Schemas, unwrap, unwrapTagged } from "../api/client.ts";
import type { Editable } from "./editable.ts";

type Of<Read extends keyof Schemas, Update extends keyof Schemas> = Editable<
  Schemas[Read] & object,
  Schemas[Update] & object
>;

export function editableRun(run_id: string): Of<"RunRead", "RunUpdate"> {
  const path = { run_id };
  return {
    load: () => unwrapTagged(api.GET("/api/v1/runs/{run_id}", { params: { path } })),
    save: (body, header) => unwrap(api.PATCH("/api/v1/runs/{run_id}", { params: { path, header }, body })),
    fields: { name: "Name", labels: "Labels", notes: "Notes", priority: "Priority" },
  };
}

export function editableSweep(sweep_id: string): Of<"SweepRead", "SweepUpdate"> {
  const path = { sweep_id };
  return {
    load: () => unwrapTagged(api.GET("/api/v1/sweeps/{sweep_id}", { params: { path } })),
    save: (body, header) =>
      unwrap(api.PATCH("/api/v1/sweeps/{sweep_id}", { params: { path, header }, body })),
    fields: { name: "Name", labels: "Labels", notes: "Notes" },
  };
}

export function editableUser(user: string): Of<"UserRead", "UserUpdate"> {
  const path = { user };
  return {
    load: () => unwrapTagged(api.GET("/api/v1/users/{user}", { params: { path } })),
    save: (body, header) => unwrap(api.PATCH("/api/v1/users/{user}", { params: { path, header }, body })),
    fields: {
      email: "Email",
      is_admin: "Administers everything",
      is_active: "May log in",
      oidc_subject: "Identity at the provider",
    },
  };
}

export function editableWebhook(webhook_id: string): Of<"WebhookRead", "WebhookUpdate"> {
  const path = { webhook_id };
  return {
    load: () => unwrapTagged(api.GET("/api/v1/webhooks/{webhook_id}", { params: { path } })),
    save: (body, header) =>
      unwrap(api.PATCH("/api/v1/webhooks/{webhook_id}", { params: { path, header }, body })),
    fields: { name: "Name", url: "Address", events: "Events", is_enabled: "Enabled" },
  };
}

export function editableCluster(name: string): Of<"ClusterRead", "ClusterUpdate"> {
  const path = { name };
  return {
    load: () => unwrapTagged(api.GET("/api/v1/clusters/{name}", { params: { path } })),
    save: (body, header) => unwrap(api.PATCH("/api/v1/clusters/{name}", { params: { path, header }, body })),
    fields: {
      address: "Address",
      python: "Python",
      code: "Code",
      reward_modules: "Reward modules",
      data_dirs: "Models and data",
      storage_dir: "Storage",
      api_url: "Address of this service",
      max_concurrent_runs: "Places",
      max_concurrent_runs_per_user: "Places for each user",
      max_concurrent_runs_per_project: "Places for each project",
    },
  };
}
