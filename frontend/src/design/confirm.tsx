import { type ReactNode, useEffect, useRef } from "react";

interface ConfirmProps {
  title: string;
  children: ReactNode;
  action: string;
  onConfirm: () => void;
  onCancel: () => void;
}

/** A question before something that cannot be taken back. Escape cancels; the focus stays inside. */
export function Confirm({ title, children, action, onConfirm, onCancel }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby="confirm-title" onClose={onCancel}>
      <h2 id="confirm-title">{title}</h2>
      <div className="dialog-body">{children}</div>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="button" className="button button-danger" onClick={onConfirm}>
          {action}
        </button>
      </div>
    </dialog>
  );
}
