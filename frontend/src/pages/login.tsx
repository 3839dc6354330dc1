import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { takePlace } from "../api/after-login.ts";
import { api, setCsrfToken, unwrap } from "../api/client.ts";
import { sessionQuery } from "../api/queries.ts";
import { usePageTitle } from "../design/page.tsx";
import { ProblemNote, Waiting } from "../design/states.tsx";

/** Codes that this page has sent: each works once, and React may run an effect twice. */
const sentCodes = new Set<string>();

export function LoginPage() {
  usePageTitle("Log in");
  const { code, error } = useLogIn();
  return (
    <main className="alone">
      <img src="/favicon.svg" alt="" width="40" height="40" />
      <h1>Foredeck</h1>
      {code && !error && <Waiting>Logging in with your link.</Waiting>}
      {error !== null && <ProblemNote error={error} />}
      {(!code || error !== null) && <HowToGetALink />}
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

function HowToGetALink() {
  return (
    <div className="note">
      <p>You need a login link, which works once. On the machine that runs Foredeck:</p>
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
      <p className="muted small">Whoever else is logged in can make one for you under Settings.</p>
    </div>
  );
}
