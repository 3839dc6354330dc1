import type { Schemas } from "../../../api/client.ts";

export type Sample = Schemas["SampleRead"];
export type Round = Sample["rounds"][number];

/** What became of a token: emitted in one of four ways, or drafted and rejected. */
export type Fate = "accepted" | "corrected" | "bonus" | "plain" | "rejected";

export interface Token {
  text: string;
  fate: Fate;
  /** Probability under the policy and under the draft, where the token was drafted. */
  p: number | null;
  q: number | null;
}

/** The tokens of one verification round: emitted ones in order, then those rejected. */
export interface RoundTokens {
  emitted: Token[];
  rejected: Token[];
}

/** Explains a round: drafted tokens up to num_accepted stand, the rest fell, and the policy's own token follows. */
export function readRound(round: Round, vocabulary: Sample["vocabulary"]): RoundTokens {
  const drafted = round.drafted.map((id, index): Token => {
    const fate = index < round.num_accepted ? "accepted" : "rejected";
    return {
      text: textOf(id, vocabulary),
      fate,
      p: exp(round.policy_logprobs[index]),
      q: exp(round.draft_logprobs[index]),
    };
  });
  const emitted = drafted.slice(0, round.num_accepted);
  if (round.emitted !== null) emitted.push(finalToken(round, vocabulary));
  return { emitted, rejected: drafted.slice(round.num_accepted) };
}

function finalToken(round: Round, vocabulary: Sample["vocabulary"]): Token {
  const fate =
    round.drafted.length === 0 ? "plain" : round.num_accepted < round.drafted.length ? "corrected" : "bonus";
  return { text: textOf(round.emitted as number, vocabulary), fate, p: null, q: null };
}

function textOf(id: number, vocabulary: Sample["vocabulary"]): string {
  return vocabulary[String(id)] ?? `⟨${id}⟩`;
}

function exp(logprob: number | undefined): number | null {
  return logprob === undefined ? null : Math.exp(logprob);
}

/** Tokens emitted per round, the same measure as the acceptance length of a step. */
export function acceptanceLength(sample: Sample): number | null {
  const rounds = sample.rounds.filter((round) => round.drafted.length > 0);
  const emitted = rounds.reduce(
    (sum, round) => sum + round.num_accepted + (round.emitted === null ? 0 : 1),
    0,
  );
  return rounds.length > 0 ? emitted / rounds.length : null;
}
