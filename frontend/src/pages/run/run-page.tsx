import { useMemo } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import type { RunRead } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { MarksContext } from "../../charts/marks.ts";
import { usePageTitle } from "../../design/page.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { TabPanel, Tabs } from "../../design/tabs.tsx";
import { SeriesContext, useSeriesStore } from "../../series/use-series.ts";
import { Alarms } from "./alarms/alarms.tsx";
import { AlarmsContext, marksOf, useAlarms } from "./alarms/use-alarms.ts";
import { AttemptsTab } from "./attempts-tab.tsx";
import { ChartsTab } from "./charts-tab.tsx";
import { ConfigTab } from "./config/config-tab.tsx";
import { DraftFigures } from "./draft-figures.tsx";
import { Gates } from "./gates/gates.tsx";
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

/** Draft training has no steps, so no rollouts are stored. */
const TABS_OF_DRAFT_TRAINING = TABS.filter(({ id }) => id !== "samples");

function RunView({ run }: { run: RunRead }) {
  const store = useSeriesStore(run.id, run.current_attempt);
  const alarms = useAlarms(run);
  const marks = useMemo(() => marksOf(alarms), [alarms]);
  const [params, setParams] = useSearchParams();
  const isDraftTraining = run.job === "draft_training";
  const tabs = isDraftTraining ? TABS_OF_DRAFT_TRAINING : TABS;
  const tab = tabs.find(({ id }) => id === params.get("tab"))?.id ?? "charts";
  const openTab = (id: string) => {
    const next = new URLSearchParams(params);
    if (id === "charts") next.delete("tab");
    else next.set("tab", id);
    setParams(next, { replace: true });
  };
  return (
    <SeriesContext value={store}>
      <AlarmsContext value={alarms}>
        <MarksContext value={marks}>
          <div className="page">
            <RunHeader run={run} />
            <Alarms isEnded={run.is_ended} />
            {isDraftTraining ? <DraftFigures run={run} /> : <KeyFigures run={run} />}
            {!isDraftTraining && <StageStrip />}
            <Gates run={run} />
            <Tabs tabs={tabs} open={tab} onOpen={openTab} label="Parts of the run" />
            <TabPanel id={tab}>
              {tab === "charts" && <ChartsTab run={run} />}
              {tab === "samples" && <SamplesTab run={run} />}
              {tab === "log" && <LogTab run={run} />}
              {tab === "config" && <ConfigTab run={run} />}
              {tab === "attempts" && <AttemptsTab run={run} />}
            </TabPanel>
          </div>
        </MarksContext>
      </AlarmsContext>
    </SeriesContext>
  );
}
