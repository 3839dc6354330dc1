import { type KeyboardEvent, type ReactNode, useRef } from "react";

interface TabsProps {
  tabs: { id: string; name: string }[];
  open: string;
  onOpen: (id: string) => void;
  label: string;
}

/** Tabs as the ARIA practices describe them: one stop of the Tab key, arrows move between them. */
export function Tabs({ tabs, open, onOpen, label }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = tabs.findIndex(({ id }) => id === open);
    const next = tabs[(index + step + tabs.length) % tabs.length];
    if (!next) return;
    onOpen(next.id);
    list.current?.querySelector<HTMLElement>(`#tab-${next.id}`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
      {tabs.map(({ id, name }) => (
        <button
          key={id}
          id={`tab-${id}`}
          type="button"
          role="tab"
          aria-selected={id === open}
          aria-controls={`panel-${id}`}
          tabIndex={id === open ? 0 : -1}
          onClick={() => onOpen(id)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

export function TabPanel({ id, children }: { id: string; children: ReactNode }) {
  return (
    <div role="tabpanel" id={`panel-${id}`} aria-labelledby={`tab-${id}`} className="tab-panel">
      {children}
    </div>
  );
}
