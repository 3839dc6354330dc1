import { Link, useParams, useSearchParams } from "react-router";
import type { RunRead } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { usePageTitle } from "../../design/page.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { TabPanel, Tabs } from "../../design/tabs.tsx";
import { SeriesContext, useSeriesStore } from "../../series/use-series.ts";
import { AttemptsTab } from "./attempts-tab.tsx";
import { ChartsTab } from "./charts-tab.tsx";
import { ConfigTab } from "./config/config-tab.tsx";
import { RunHeader } from "./header.tsx";
import { KeyFigures } from "./key-figures.tsx";
import { LogTab } from "./log/log-tab.tsx";
import { SamplesTab } from "./samples/samples-tab.tsx";
import { StageStrip } from "./stage-strip.tsx";
import { useLiveRun } from "./use-live-run.ts";

export function RunPage() {
  const { runId = "" } = useParams();
  const run = useLiveRun(runId);
  usePageTitle(run.data?.name ?? "Run");
  if (run.data) return <RunView key={run.data.id} run={run.data} />;
  if (run.error instanceof ApiProblem && [404, 422].includes(run.error.status)) return <NoSuchRun />;
  if (run.error) return <ProblemNote error={run.error} onRetry={() => run.refetch()} />;
  return <Waiting>Fetching the run.</Waiting>;
}

function NoSuchRun() {
  return (
    <Empty title="There is no such run.">
      <p>
        It may be on another server, or its address was cut. <Link to="/runs">See the runs</Link>
      </p>
    </Empty>
  );
}

const TABS = [
  { id: "charts", name: "Charts" },
  { id: "samples", name: "Samples" },
  { id: "log", name: "Log" },
  { id: "config", name: "Configuration" },
  { id: "attempts", name: "Attempts" },
];

function RunView({ run }: { run: RunRead }) {
  const store = useSeriesStore(run.id, run.current_attempt);
  const [params, setParams] = useSearchParams();
  const tab = TABS.find(({ id }) => id === params.get("tab"))?.id ?? "charts";
  const openTab = (id: string) => {
    const next = new URLSearchParams(params);
    if (id === "charts") next.delete("tab");
    else next.set("tab", id);
    setParams(next, { replace: true });
  };
  return (
    <SeriesContext value={store}>
      <div className="page">
        <RunHeader run={run} />
        <KeyFigures run={run} />
        <StageStrip />
        <Tabs tabs={TABS} open={tab} onOpen={openTab} label="Parts of the run" />
        <TabPanel id={tab}>
          {tab === "charts" && <ChartsTab isSettingUp={run.step === 0 && !run.is_ended} />}
          {tab === "samples" && <SamplesTab run={run} />}
          {tab === "log" && <LogTab run={run} />}
          {tab === "config" && <ConfigTab run={run} />}
          {tab === "attempts" && <AttemptsTab run={run} />}
        </TabPanel>
      </div>
    </SeriesContext>
  );
}
