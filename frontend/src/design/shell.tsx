import { NavLink, Outlet } from "react-router";
import { useStreamState } from "../stream/use-stream.ts";
import { AccessIcon, ClustersIcon, LaunchIcon, RunsIcon, SettingsIcon, SweepsIcon } from "./icons.tsx";

const PAGES = [
  { to: "/runs", name: "Runs", icon: RunsIcon },
  { to: "/sweeps", name: "Sweeps", icon: SweepsIcon },
  { to: "/launch", name: "Launch", icon: LaunchIcon },
  { to: "/clusters", name: "Clusters", icon: ClustersIcon },
  { to: "/access", name: "Access", icon: AccessIcon },
  { to: "/settings", name: "Settings", icon: SettingsIcon },
];

/** The frame of every page: the rail at the left, a bar at the bottom of a phone. */
export function Shell() {
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <nav className="rail" aria-label="Pages">
        <NavLink to="/runs" className="brand" aria-label="Foredeck, to the runs">
          <img src="/favicon.svg" alt="" width="24" height="24" />
          <span>Foredeck</span>
        </NavLink>
        <ul>
          {PAGES.map(({ to, name, icon: Icon }) => (
            <li key={to}>
              <NavLink to={to}>
                <Icon />
                <span>{name}</span>
              </NavLink>
            </li>
          ))}
        </ul>
      </nav>
      <main id="content" tabIndex={-1}>
        <StreamNote />
        <Outlet />
      </main>
    </div>
  );
}

function StreamNote() {
  const state = useStreamState();
  if (state !== "down") return null;
  return (
    <p className="stream-note" role="status">
      Live updates are interrupted. Looking every 2 s until they are back.
    </p>
  );
}
