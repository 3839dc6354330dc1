import { CopyButton } from "../../design/copy.tsx";

/** A secret that is shown this once. */
export function SecretNote({ name, secret, onClose }: { name: string; secret: string; onClose: () => void }) {
  return (
    <div className="note tone-running webhook-secret">
      <p>
        Copy the secret of <strong>{name}</strong> now: it is shown this once. The receiver verifies
        signatures with it.
      </p>
      <p className="mono secret">{secret}</p>
      <div className="actions">
        <CopyButton text={secret} label="Copy the secret" />
        <button type="button" className="button" onClick={onClose}>
          Done
        </button>
      </div>
    </div>
  );
}
