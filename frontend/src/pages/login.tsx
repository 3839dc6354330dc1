import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { takePlace } from "../api/after-login.ts";
import { api, setCsrfToken, unwrap } from "../api/client.ts";
import { loginMethodsQuery, sessionQuery } from "../api/queries.ts";
import { usePageTitle } from "../design/page.tsx";
import { ProblemNote, Waiting } from "../design/states.tsx";

/** Why the identity provider's answer let nobody in. */
export const PROBLEMS: Record<string, string> = {
  state: "This login was begun in another browser, was used before, or took longer than 10 minutes.",
  provider: "The identity provider refused the login, or gave no answer that can be trusted.",
  domain: "The identity provider knows you, but you have no access here yet. Ask who runs this service.",
  inactive: "Your access has ended. Ask who runs this service.",
};

/** Codes that this page has sent: each works once, and React may run an effect twice. */
const sentCodes = new Set<string>();

export function LoginPage() {
  usePageTitle("Log in");
  const { code, error } = useLogIn();
  const hash = new URLSearchParams(useLocation().hash.slice(1));
  const problem = PROBLEMS[hash.get("problem") ?? ""];
  return (
    <main className="alone">
      <img src="/favicon.svg" alt="" width="40" height="40" />
      <h1>Foredeck</h1>
      {code && !error && <Waiting>Logging in with your link.</Waiting>}
      {error !== null && <ProblemNote error={error} />}
      {problem && (
        <div className="note tone-failed" role="alert">
          <p>{problem}</p>
        </div>
      )}
      {(!code || error !== null) && <OtherWays />}
    </main>
  );
}

/** Logs in with the code of the address's fragment, which browsers do not send to any server. */
function useLogIn(): { code: string | null; error: unknown } {
  const [error, setError] = useState<unknown>(null);
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const { hash } = useLocation();
  const code = new URLSearchParams(hash.slice(1)).get("code");

  useEffect(() => {
    if (!code || sentCodes.has(code)) return;
    sentCodes.add(code);
    unwrap(api.POST("/api/v1/session", { body: { code } })).then((session) => {
      setCsrfToken(session.csrf_token);
      queryClient.setQueryData(sessionQuery.queryKey, session);
      void navigate(takePlace(), { replace: true });
    }, setError);
  }, [code, navigate, queryClient]);
  return { code, error };
}

/** The identity provider, where there is one. Whoever comes back from it is logged in already. */
function OtherWays() {
  const oidc = useQuery({ ...loginMethodsQuery, retry: false }).data?.oidc;
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  useEffect(() => {
    queryClient.fetchQuery({ ...sessionQuery, retry: false, staleTime: 0 }).then(
      () => void navigate(takePlace(), { replace: true }),
      () => undefined,
    );
  }, [navigate, queryClient]);
  return (
    <>
      {oidc && (
        <a className="button button-primary" href={oidc.path}>
          Log in with {oidc.name}
        </a>
      )}
      <HowToGetALink isOnlyWay={!oidc} />
    </>
  );
}

function HowToGetALink({ isOnlyWay }: { isOnlyWay: boolean }) {
  return (
    <div className="note">
      <p>
        {isOnlyWay ? "You need" : "Otherwise you need"} a login link, which works once. On the machine that
        runs Foredeck:
      </p>
      <dl className="commands">
        <dt>
          <code>foredeck login</code>
        </dt>
        <dd>makes a new link</dd>
        <dt>
          <code>foredeck up</code>
        </dt>
        <dd>starts Foredeck and prints one</dd>
      </dl>
      <p className="muted small">Who administers this service can make one for you under Access.</p>
    </div>
  );
}
