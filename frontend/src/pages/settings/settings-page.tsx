import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, setCsrfToken, unwrap } from "../../api/client.ts";
import { sessionQuery } from "../../api/queries.ts";
import { CopyButton } from "../../design/copy.tsx";
import { Page } from "../../design/page.tsx";
import { ProblemNote } from "../../design/states.tsx";
import { type ThemeChoice, useTheme } from "../../design/use-theme.ts";
import { formatExact } from "../../format/time.ts";

export function SettingsPage() {
  return (
    <Page title="Settings">
      <div className="settings">
        <Appearance />
        <Account />
        <Webhooks />
      </div>
    </Page>
  );
}

function Webhooks() {
  return (
    <section className="card">
      <h2>Webhooks</h2>
      <p className="muted">Other services can be told when a run ends, an alarm is raised or a gate fails.</p>
      <Link className="button" to="/webhooks">
        Open webhooks
      </Link>
    </section>
  );
}

const THEMES: { choice: ThemeChoice; name: string }[] = [
  { choice: "system", name: "As the system" },
  { choice: "light", name: "Light" },
  { choice: "dark", name: "Dark" },
];

function Appearance() {
  const [theme, setTheme] = useTheme();
  return (
    <section className="card">
      <h2>Appearance</h2>
      <fieldset className="segments">
        <legend className="visually-hidden">Theme</legend>
        {THEMES.map(({ choice, name }) => (
          <button key={choice} type="button" aria-pressed={choice === theme} onClick={() => setTheme(choice)}>
            {name}
          </button>
        ))}
      </fieldset>
      <p className="muted small">Stored in this browser.</p>
    </section>
  );
}

function Account() {
  const session = useQuery(sessionQuery);
  const queryClient = useQueryClient();
  const logOut = useMutation({
    mutationFn: (everywhere: boolean) =>
      unwrap(api.DELETE("/api/v1/session", { params: { query: { everywhere } } })),
    onSuccess: () => {
      setCsrfToken(null);
      queryClient.clear();
      window.location.assign("/login");
    },
  });
  const link = useMutation({ mutationFn: () => unwrap(api.POST("/api/v1/login-links")) });
  return (
    <section className="card">
      <h2>Account</h2>
      <p>
        Logged in as <strong>{session.data?.user.name}</strong>.
      </p>
      <div className="actions">
        <button type="button" className="button" onClick={() => link.mutate()} disabled={link.isPending}>
          Make a login link
        </button>
        {[false, true].map((everywhere) => (
          <button
            key={String(everywhere)}
            type="button"
            className="button"
            onClick={() => logOut.mutate(everywhere)}
            disabled={logOut.isPending}
          >
            {everywhere ? "Log out of all browsers" : "Log out"}
          </button>
        ))}
      </div>
      {link.data && (
        <div className="note tone-running">
          <p>Opens the dashboard as you, once, until {formatExact(link.data.expires_at)}:</p>
          <p className="mono secret">{link.data.url}</p>
          <CopyButton text={link.data.url} label="Copy the link" />
        </div>
      )}
      {(link.error ?? logOut.error) && <ProblemNote error={link.error ?? logOut.error} />}
    </section>
  );
}
