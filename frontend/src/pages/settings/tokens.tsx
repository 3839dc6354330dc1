import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { tokensQuery } from "../../api/queries.ts";
import { Confirm } from "../../design/confirm.tsx";
import { CopyButton } from "../../design/copy.tsx";
import { ProblemNote, Waiting } from "../../design/states.tsx";
import { RelativeTime } from "../../design/time.tsx";
import { FieldRow } from "../../forms/field.tsx";

type Token = Schemas["TokenRead"];
type Scope = Schemas["TokenCreate"]["scopes"][number];

const SCOPES: { scope: Scope; words: string }[] = [
  { scope: "read", words: "Read: see runs, series and logs" },
  { scope: "write", words: "Write: also launch, change and stop runs" },
  { scope: "admin", words: "Admin: also tokens, login links and clusters" },
];

/** API tokens: for the command line on other machines, CI and scripts. */
export function Tokens() {
  const tokens = useQuery(tokensQuery);
  return (
    <section className="card">
      <h2>API tokens</h2>
      <p className="muted">
        For CI and scripts: set <code>FOREDECK_URL</code> and <code>FOREDECK_TOKEN</code>, or send{" "}
        <code>Authorization: Bearer …</code>.
      </p>
      <NewToken />
      {tokens.isPending && <Waiting>Fetching the tokens.</Waiting>}
      {tokens.error && <ProblemNote error={tokens.error} onRetry={() => tokens.refetch()} />}
      {tokens.data && tokens.data.length > 0 && (
        <ul className="token-list">
          {tokens.data.map((token) => (
            <TokenRow key={token.id} token={token} />
          ))}
        </ul>
      )}
    </section>
  );
}

function NewToken() {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("write");
  const queryClient = useQueryClient();
  const create = useMutation({
    mutationFn: () => unwrap(api.POST("/api/v1/tokens", { body: { name, scopes: [scope] } })),
    onSuccess: () => {
      setName("");
      void queryClient.invalidateQueries({ queryKey: tokensQuery.queryKey });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  const refused = create.error instanceof ApiProblem ? create.error.errors : [];
  const messages = refused.filter(({ pointer }) => pointer === "/name").map(({ detail }) => detail);
  return (
    <form className="token-form" onSubmit={submit} noValidate>
      <FieldRow id="token-name" label="Name" help="What it is for." messages={messages}>
        <input
          id="token-name"
          className="input wide"
          value={name}
          placeholder="ci"
          aria-invalid={messages.length > 0}
          aria-describedby="token-name-help token-name-problems"
          onChange={(event) => setName(event.target.value)}
        />
      </FieldRow>
      <FieldRow id="token-scope" label="May" help="" messages={[]}>
        <select
          id="token-scope"
          className="input wide"
          value={scope}
          onChange={(event) => setScope(event.target.value as Scope)}
        >
          {SCOPES.map(({ scope: each, words }) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
      </FieldRow>
      <button type="submit" className="button" disabled={create.isPending}>
        Make a token
      </button>
      {create.error && messages.length === 0 && <ProblemNote error={create.error} />}
      {create.data && (
        <div className="note tone-running">
          <p>Copy {create.data.name} now: it is shown this once.</p>
          <p className="mono secret">{create.data.token}</p>
          <CopyButton text={create.data.token} label="Copy the token" />
        </div>
      )}
    </form>
  );
}

function TokenRow({ token }: { token: Token }) {
  const [isAsking, setAsking] = useState(false);
  const queryClient = useQueryClient();
  const revoke = useMutation({
    mutationFn: () =>
      unwrap(api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: token.id } } })),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: tokensQuery.queryKey }),
  });
  const confirm = () => {
    setAsking(false);
    revoke.mutate();
  };
  return (
    <li>
      <div>
        <strong>{token.name}</strong> <span className="mono muted">fdk_{token.prefix}…</span>
        <p className="muted small">
          {token.scopes.join(", ")} · made <RelativeTime time={token.created_at} /> ·{" "}
          {token.last_used_at ? (
            <>
              used <RelativeTime time={token.last_used_at} />
            </>
          ) : (
            "never used"
          )}
          {token.expires_at && (
            <>
              {" "}
              · expires <RelativeTime time={token.expires_at} />
            </>
          )}
        </p>
        {revoke.error && <ProblemNote error={revoke.error} />}
      </div>
      <button type="button" className="button" onClick={() => setAsking(true)} disabled={revoke.isPending}>
        Revoke
      </button>
      {isAsking && (
        <Confirm
          title={`Revoke “${token.name}”?`}
          action="Revoke"
          onConfirm={confirm}
          onCancel={() => setAsking(false)}
        >
          <p>Whatever uses it is refused from now on.</p>
        </Confirm>
      )}
    </li>
  );
}
