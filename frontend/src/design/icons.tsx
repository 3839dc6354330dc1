import type { ReactNode } from "react";

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      {children}
    </svg>
  );
}

export const RunsIcon = () => (
  <Icon>
    <path d="M2 4h12M2 8h12M2 12h8" />
  </Icon>
);
export const SweepsIcon = () => (
  <Icon>
    <path d="M2.5 13.5v-11M2.5 13.5h11M6 10.5v-3M9 10.5v-6M12 10.5v-4" />
  </Icon>
);
export const LaunchIcon = () => (
  <Icon>
    <path d="M4.5 2.8v10.4L13 8z" />
  </Icon>
);
export const ClustersIcon = () => (
  <Icon>
    <path d="M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01" />
  </Icon>
);
export const AccessIcon = () => (
  <Icon>
    <circle cx="5" cy="11" r="2.7" />
    <path d="m7 9 6.2-6.2M10.6 5.4l2 2M8.7 7.3l1.5 1.5" />
  </Icon>
);
export const SettingsIcon = () => (
  <Icon>
    <path d="M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6M10 2.5v4M6 9.5v4" />
  </Icon>
);
export const QueuedIcon = () => (
  <Icon>
    <circle cx="8" cy="8" r="5.5" />
    <path d="M8 5v3.2l2 1.3" />
  </Icon>
);
export const DispatchingIcon = () => (
  <Icon>
    <path d="M2.5 8h10M9 4.5 12.5 8 9 11.5" />
  </Icon>
);
export const RunningIcon = () => (
  <Icon>
    <circle className="pulse" cx="8" cy="8" r="3.4" fill="currentColor" stroke="none" />
    <circle cx="8" cy="8" r="6" />
  </Icon>
);
export const SucceededIcon = () => (
  <Icon>
    <path d="m3 8.5 3.2 3.2L13 4.8" />
  </Icon>
);
export const FailedIcon = () => (
  <Icon>
    <path d="m4 4 8 8M12 4l-8 8" />
  </Icon>
);
export const LostIcon = () => (
  <Icon>
    <path d="M8 2.5 14 13H2zM8 6.5v3M8 11.2v.1" />
  </Icon>
);
export const AlarmIcon = () => (
  <Icon>
    <path d="M3 11.5h10L11.8 9V6.8a3.8 3.8 0 0 0-7.6 0V9zM6.8 14h2.4M8 1.6V3" />
  </Icon>
);
export const StoppedIcon = () => (
  <Icon>
    <path d="M4 4h8v8H4z" />
  </Icon>
);
export const TableIcon = () => (
  <Icon>
    <path d="M2.5 3h11v10h-11zM2.5 6.5h11M2.5 10h11M7 3v10" />
  </Icon>
);
export const ChartIcon = () => (
  <Icon>
    <path d="M2.5 2.5v11h11M5 10l2.5-3 2 1.5L13 4.5" />
  </Icon>
);
