import { ProblemNote } from "../design/states.tsx";
import { ConflictNote } from "./conflict-note.tsx";
import type { EditConflict } from "./editable.ts";

interface EditFooterProps {
  /** What useEdit says of it. */
  edit: {
    save: { error: Error | null; isPending: boolean };
    conflict: EditConflict | null;
    refused: unknown[];
  };
  /** Fields that the reader has changed. */
  own: string[];
  onDrop: () => void;
  onClose: () => void;
}

/** What stands under a form of an edit: what went wrong, and its buttons. */
export function EditFooter({ edit: { save, conflict, refused }, own, onDrop, onClose }: EditFooterProps) {
  return (
    <>
      {conflict && (
        <ConflictNote conflict={conflict} own={own}>
          <p>What you typed is still here, beside what is there now. Save it, or go on from theirs.</p>
          <button type="button" className="button" onClick={onDrop}>
            Drop mine, keep theirs
          </button>
        </ConflictNote>
      )}
      {save.error && !conflict && refused.length === 0 && <ProblemNote error={save.error} />}
      <div className="actions">
        <button type="submit" className="button button-primary" disabled={save.isPending}>
          {save.isPending ? "Saving" : "Save"}
        </button>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </>
  );
}
