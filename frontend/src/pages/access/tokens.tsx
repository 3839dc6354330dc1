import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { projectsQuery, sessionQuery, tokensQuery } from "../../api/queries.ts";
import { Confirm } from "../../design/confirm.tsx";
import { CopyButton } from "../../design/copy.tsx";
import { ProblemNote, Waiting } from "../../design/states.tsx";
import { RelativeTime } from "../../design/time.tsx";
import { FieldRow } from "../../forms/field.tsx";

type Token = Schemas["TokenRead"];
type Scope = Schemas["TokenCreate"]["scopes"][number];

type Project = Schemas["ProjectRead"];

const SCOPES: { scope: Scope; role: Project["role"]; words: string }[] = [
  { scope: "read", role: "viewer", words: "Read: see runs, series and logs" },
  { scope: "write", role: "launcher", words: "Write: also launch, change and stop runs" },
  { scope: "admin", role: "admin", words: "Admin: also whatever you may administer" },
];
const LIFETIMES = [
  { days: 30, words: "30 days" },
  { days: 90, words: "90 days" },
  { days: 365, words: "a year" },
  { days: 0, words: "until it is revoked" },
];

/** The scopes that a token for these projects can have: those of the reader's best role in one of them. */
export function scopesOf(projects: Pick<Project, "role">[]): Scope[] {
  const best = Math.max(-1, ...projects.map(({ role }) => SCOPES.findIndex((scope) => scope.role === role)));
  return SCOPES.slice(0, best + 1).map(({ scope }) => scope);
}

/** API tokens: for the command line on other machines, CI and scripts. */
export function Tokens() {
  const tokens = useQuery(tokensQuery);
  const own = useQuery(sessionQuery).data?.user.name;
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
        <ul className="access-list">
          {tokens.data.map((token) => (
            <TokenRow key={token.id} token={token} isOwn={token.user === own} />
          ))}
        </ul>
      )}
    </section>
  );
}

function NewToken() {
  const [name, setName] = useState("");
  const [wanted, setScope] = useState<Scope>("write");
  const [project, setProject] = useState("");
  const [days, setDays] = useState(90);
  const projects = useQuery(projectsQuery).data ?? [];
  const within = projects.filter((each) => !project || each.name === project);
  const scopes = scopesOf(within);
  const scope = scopes.includes(wanted) ? wanted : (scopes.at(-1) ?? "read");
  const queryClient = useQueryClient();
  const create = useMutation({
    mutationFn: () => {
      const expires_at = days ? new Date(Date.now() + days * 86_400_000).toISOString() : null;
      const body = { name, scopes: [scope], project: project || null, expires_at };
      return unwrap(api.POST("/api/v1/tokens", { body }));
    },
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
    <form className="access-form" onSubmit={submit} noValidate>
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
          {SCOPES.filter((each) => scopes.includes(each.scope)).map(({ scope: each, words }) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
      </FieldRow>
      {projects.length > 1 && (
        <FieldRow id="token-project" label="In" help="" messages={[]}>
          <select
            id="token-project"
            className="input wide"
            value={project}
            onChange={(event) => setProject(event.target.value)}
          >
            <option value="">all your projects</option>
            {projects.map((each) => (
              <option key={each.id}>{each.name}</option>
            ))}
          </select>
        </FieldRow>
      )}
      <FieldRow id="token-lifetime" label="Works for" help="" messages={[]}>
        <select
          id="token-lifetime"
          className="input wide"
          value={days}
          onChange={(event) => setDays(Number(event.target.value))}
        >
          {LIFETIMES.map((each) => (
            <option key={each.days} value={each.days}>
              {each.words}
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

function TokenRow({ token, isOwn }: { token: Token; isOwn: boolean }) {
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
          {!isOwn && `${token.user ?? "nobody"}'s · `}
          {token.scopes.join(", ")} in {token.project ?? "all projects"} · made{" "}
          <RelativeTime time={token.created_at} /> ·{" "}
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
