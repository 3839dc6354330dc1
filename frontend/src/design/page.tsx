import { type ReactNode, useEffect } from "react";

interface PageProps {
  title: string;
  /** What stands beside the title: buttons. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A page with its title, in the window's title too. */
export function Page({ title, actions, children }: PageProps) {
  usePageTitle(title);
  return (
    <div className="page">
      <header className="page-head">
        <h1>{title}</h1>
        <div className="actions">{actions}</div>
      </header>
      {children}
    </div>
  );
}

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Foredeck`;
  }, [title]);
}
