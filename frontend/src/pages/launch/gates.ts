import type { Schemas } from "../../api/client.ts";
import type { Problems } from "../../forms/problems.ts";

export type Gate = Schemas["Gate"];

/** Gates of the launch form: an assertion a line, and what all of them that say `baseline` compare with. */
export interface GatesDraft {
  text: string;
  baseline: string;
  /** Gates of the run that is cloned: a line that stands as it was keeps what the form does not show of it. */
  known: Gate[];
}

export const NO_GATES: GatesDraft = { text: "", baseline: "", known: [] };

const SAYS_BASELINE = /\bbaseline\b/;

export function saysBaseline(text: string): boolean {
  return SAYS_BASELINE.test(text);
}

export function gatesDraft(gates: Gate[]): GatesDraft {
  return {
    text: gates.map(({ assertion }) => assertion).join("\n"),
    baseline: firstBaseline(gates),
    known: gates,
  };
}

function firstBaseline(gates: Gate[]): string {
  return gates.find((gate) => gate.baseline)?.baseline ?? "";
}

export function gatesOf({ text, baseline, known }: GatesDraft): Gate[] {
  return linesOf(text).map(({ assertion }) => {
    const before = known.find((gate) => gate.assertion === assertion);
    if (before && baseline === firstBaseline(known)) return before;
    const compared = saysBaseline(assertion) && baseline.trim() ? { baseline: baseline.trim() } : {};
    return { ...before, assertion, ...compared };
  });
}

/** What the server says of each gate, by the line that it stands in. */
export function gateMessages(text: string, problems: Problems): { text: string[]; baseline: string[] } {
  const lines = linesOf(text);
  const found = { text: [...(problems["/gates"] ?? [])], baseline: [] as string[] };
  for (const [pointer, messages] of Object.entries(problems)) {
    const [, index, field] = pointer.match(/^\/gates\/(\d+)(?:\/(\w+))?$/) ?? [];
    if (index === undefined) continue;
    const line = lines[Number(index)]?.number ?? Number(index) + 1;
    for (const message of messages) {
      const list = field === "baseline" ? found.baseline : found.text;
      list.push(
        field === "baseline" || field === "assertion"
          ? `Line ${line}: ${message}`
          : `Line ${line}, ${field}: ${message}`,
      );
    }
  }
  return found;
}

function linesOf(text: string): { assertion: string; number: number }[] {
  return text
    .split("\n")
    .map((line, index) => ({ assertion: line.trim(), number: index + 1 }))
    .filter(({ assertion }) => assertion !== "");
}
