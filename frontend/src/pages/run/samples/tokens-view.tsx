import { formatNumber } from "../../../format/number.ts";
import { type Fate, type RoundTokens, readRound, type Sample, type Token } from "./tokens.ts";

const FATES: Record<Fate, string> = {
  accepted: "drafted, accepted",
  corrected: "corrected by the policy",
  bonus: "bonus from the policy",
  plain: "not speculated",
  rejected: "drafted, rejected",
};

/** A response as text, each token coloured by how it came about. */
export function ResponseText({ sample }: { sample: Sample }) {
  const tokens = sample.rounds.flatMap((round) => readRound(round, sample.vocabulary).emitted);
  return <p className="tokens">{tokens.length > 0 ? <Tokens tokens={tokens} /> : sample.response}</p>;
}

/** The same response round by round, with the tokens that were drafted and rejected. */
export function Rounds({ sample }: { sample: Sample }) {
  return (
    <ol className="rounds">
      {numbered(sample).map(({ number, round }) => (
        <li key={number}>
          <span className="round-number muted">{number}</span>
          <span className="tokens">
            <Tokens tokens={round.emitted} />
            <Tokens tokens={round.rejected} />
          </span>
        </li>
      ))}
    </ol>
  );
}

function numbered(sample: Sample): { number: number; round: RoundTokens }[] {
  return sample.rounds.map((round, index) => ({
    number: index + 1,
    round: readRound(round, sample.vocabulary),
  }));
}

function Tokens({ tokens }: { tokens: Token[] }) {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: tokens of a stored response never move.
    <TokenText key={index} token={token} />
  ));
}

function TokenText({ token }: { token: Token }) {
  const Element = token.fate === "rejected" ? "del" : "span";
  return (
    <Element className={`token token-${token.fate}`} title={describe(token)}>
      {token.text}
    </Element>
  );
}

function describe({ fate, p, q }: Token): string {
  const probabilities = p === null || q === null ? "" : ` · p ${formatNumber(p)} · q ${formatNumber(q)}`;
  return `${FATES[fate]}${probabilities}`;
}

/** What the colours mean. */
export function TokenLegend() {
  return (
    <p className="token-legend small">
      {(Object.keys(FATES) as Fate[]).map((fate) => (
        <span key={fate}>
          <span className={`token token-${fate}`}>token</span> {FATES[fate]}
        </span>
      ))}
      <span className="muted">Hover shows p (policy) and q (draft).</span>
    </p>
  );
}
