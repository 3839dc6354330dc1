import { useQuery } from "@tanstack/react-query";
import type { RunRead } from "../../../api/client.ts";
import { configYamlQuery } from "../../../api/queries.ts";
import { CopyButton } from "../../../design/copy.tsx";
import { ProblemNote, Waiting } from "../../../design/states.tsx";
import { Comparison } from "./comparison.tsx";

/** The resolved configuration as a file, and what in it differs from elsewhere. */
export function ConfigTab({ run }: { run: RunRead }) {
  const yaml = useQuery(configYamlQuery(run.id));
  return (
    <div className="config">
      <Comparison run={run} />
      <section>
        <div className="card-head">
          <h2>Resolved configuration</h2>
          <div className="actions">
            {yaml.data && <CopyButton text={yaml.data} label="Copy" />}
            <a
              className="button"
              href={`/api/v1/runs/${run.id}/config.yaml`}
              download={`${fileName(run.name)}.yaml`}
            >
              Download
            </a>
          </div>
        </div>
        <p className="muted small">
          SHA-256 <code>{run.config_sha256}</code>
        </p>
        {yaml.error && <ProblemNote error={yaml.error} onRetry={() => yaml.refetch()} />}
        {yaml.isPending && <Waiting>Fetching the configuration.</Waiting>}
        {yaml.data && <pre className="yaml">{yaml.data}</pre>}
      </section>
    </div>
  );
}

function fileName(name: string): string {
  return name.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "run";
}
