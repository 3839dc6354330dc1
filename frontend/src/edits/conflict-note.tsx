import type { ReactNode } from "react";
import { ProblemNote } from "../design/states.tsx";
import { EditConflict } from "./editable.ts";
import { valueWords } from "./words.ts";

interface ConflictNoteProps {
  conflict: EditConflict;
  /** The fields that the reader has changed, too. */
  own?: string[];
  children: ReactNode;
}

/** A phone's screen may end above it. */
function showIt(note: HTMLElement | null): void {
  note?.scrollIntoView({ block: "nearest" });
}

/** What somebody else has changed meanwhile, and what can be done about it. */
export function ConflictNote({ conflict, own = [], children }: ConflictNoteProps) {
  return (
    <div className="note tone-lost conflict" role="alert" ref={showIt}>
      <p>
        <strong>{conflict.message}</strong>
      </p>
      {conflict.changes.length > 0 && (
        <ul>
          {conflict.changes.map(({ field, name, before, now }) => (
            <li key={field}>
              {name}: {valueWords(before)} became {valueWords(now)}
              {own.includes(field) && ". You changed it, too: saving puts yours in its place"}.
            </li>
          ))}
        </ul>
      )}
      {children}
    </div>
  );
}

/** Why a change by one press was not saved. */
export function EditProblem({ error }: { error: unknown }) {
  if (!(error instanceof EditConflict)) return <ProblemNote error={error} />;
  return (
    <ConflictNote conflict={error}>
      <p>It is shown here as it is now. Look at it, and press again if you still want the change.</p>
    </ConflictNote>
  );
}
