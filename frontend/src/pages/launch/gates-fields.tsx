import { FieldRow } from "../../forms/field.tsx";
import type { Problems } from "../../forms/problems.ts";
import { type GatesDraft, gateMessages, saysBaseline } from "./gates.ts";

interface GatesFieldsProps {
  gates: GatesDraft;
  problems: Problems;
  onChange: (gates: GatesDraft) => void;
}

/** What the run has to come to: an assertion a line. */
export function GatesFields({ gates, problems, onChange }: GatesFieldsProps) {
  const messages = gateMessages(gates.text, problems);
  return (
    <>
      <FieldRow
        id="run-gates"
        label="Gates"
        help="What the run has to come to, an assertion a line: judged when it has ended."
        messages={messages.text}
      >
        <textarea
          id="run-gates"
          className="input wide mono"
          rows={Math.min(12, Math.max(3, gates.text.split("\n").length))}
          value={gates.text}
          placeholder={"acceptance_length >= 2.8 over last 20 steps\nno alarms"}
          spellCheck={false}
          aria-invalid={messages.text.length > 0}
          aria-describedby="run-gates-help run-gates-problems"
          onChange={(event) => onChange({ ...gates, text: event.target.value })}
        />
      </FieldRow>
      {saysBaseline(gates.text) && (
        <FieldRow
          id="run-baseline"
          label="Baseline"
          help="What they compare with: label:key:value for the newest green run with that label, run:id, or origin for the run this one is cloned from."
          messages={messages.baseline}
        >
          <input
            id="run-baseline"
            className="input wide mono"
            value={gates.baseline}
            placeholder="label:branch:main"
            spellCheck={false}
            aria-invalid={messages.baseline.length > 0}
            aria-describedby="run-baseline-help run-baseline-problems"
            onChange={(event) => onChange({ ...gates, baseline: event.target.value })}
          />
        </FieldRow>
      )}
    </>
  );
}
