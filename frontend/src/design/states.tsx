import type { ReactNode } from "react";
import { ApiProblem, wordsOf } from "../api/problem.ts";

/** Says what is awaited. */
export function Waiting({ children }: { children: ReactNode }) {
  return (
    <p className="waiting" role="status">
      {children}
    </p>
  );
}

/** What went wrong, in the server's words, and what can be done. */
export function ProblemNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const requestId = error instanceof ApiProblem ? error.requestId : null;
  return (
    <div className="note tone-failed" role="alert">
      <p>{wordsOf(error)}</p>
      {requestId && <p className="small mono">Request {requestId}</p>}
      {onRetry && (
        <button type="button" className="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What will be here, and how to get it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
