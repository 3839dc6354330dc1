import { useQuery } from "@tanstack/react-query";
import type { RunRead } from "../../api/client.ts";
import { figuresQuery } from "../../api/queries.ts";
import { CopyButton } from "../../design/copy.tsx";
import { formatNumber, formatPercent } from "../../format/number.ts";
import { getAt } from "../../forms/values.ts";
import { type Columns, latestValue } from "../../series/columns.ts";
import { useSeries } from "../../series/use-series.ts";
import { KeyFigure } from "./key-figure.tsx";

const LOSS = "draft_pretraining/loss_nats";
const EXPECTED = "draft_pretraining/expected_acceptance_length_tokens";
const HELD_OUT_EXPECTED = "draft_pretraining/held_out_expected_acceptance_length_tokens";
const HELD_OUT = "draft_pretraining/held_out_acceptance_length_tokens";
const POSITIONS = [
  "draft_pretraining/held_out_acceptance_position_1_fraction",
  "draft_pretraining/held_out_acceptance_position_2_fraction",
  "draft_pretraining/held_out_acceptance_position_3_fraction",
];

/** What a trained draft is worth on prompts it was not trained on, and where it lies. */
export function DraftFigures({ run }: { run: RunRead }) {
  const series = useSeries([LOSS, EXPECTED, HELD_OUT_EXPECTED, HELD_OUT, ...POSITIONS]);
  const palette = useQuery(figuresQuery).data?.palette ?? {};
  const k = getAt(run.config, ["drafter", "draft_length"]);
  const [first, ...others] = POSITIONS.map((name) => latestValue(series(name)));
  const acceptance = palette.acceptance ?? "var(--accent)";
  return (
    <>
      <div className="key-figures">
        <KeyFigure
          title="Held-out acceptance length"
          value={formatNumber(latestValue(series(HELD_OUT)))}
          suffix={typeof k === "number" ? `of up to ${k + 1}` : ""}
          course={undefined}
          colour={acceptance}
          hint={measuredWhen(series(HELD_OUT))}
        />
        <KeyFigure
          title="Expected acceptance length"
          value={formatNumber(latestValue(series(HELD_OUT_EXPECTED)) ?? latestValue(series(EXPECTED)))}
          course={series(EXPECTED)}
          colour={palette.expected ?? "var(--accent)"}
          hint={
            series(HELD_OUT_EXPECTED)?.step.length ? "On held-out responses" : "On the training batch so far"
          }
        />
        <KeyFigure
          title="Held-out acceptance, position 1"
          value={formatPercent(first)}
          course={undefined}
          colour={acceptance}
          hint={others.some((value) => value !== null) ? `Then ${others.map(formatPercent).join(", ")}` : ""}
        />
        <KeyFigure
          title="Loss of the draft"
          value={formatNumber(latestValue(series(LOSS)))}
          course={series(LOSS)}
          colour={palette.draft_loss ?? "var(--accent)"}
          hint="Nats per token against the policy"
        />
      </div>
      <Draft run={run} />
    </>
  );
}

function measuredWhen(columns: Columns | undefined): string {
  return latestValue(columns) === null
    ? "Measured once the draft is trained"
    : "Measured on prompts it was not trained on";
}

/** Where the trained draft lies: what another run takes as its drafter's path. */
function Draft({ run }: { run: RunRead }) {
  if (!run.last_checkpoint_path) return null;
  return (
    <p className="draft-path">
      The draft is in <code>{run.last_checkpoint_path}</code>
      <CopyButton text={run.last_checkpoint_path} label="Copy" />
      <span className="muted small">Another run takes it as its drafter's path.</span>
    </p>
  );
}
