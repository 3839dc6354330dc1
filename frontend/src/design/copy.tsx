import { useEffect, useState } from "react";

/** Copies a text and says so. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [state, setState] = useState<"idle" | "copied" | "refused">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () =>
    copyText(text).then(
      () => setState("copied"),
      () => setState("refused"),
    );
  const words = { idle: label, copied: "Copied", refused: "Copying was refused by the browser" };
  return (
    <button type="button" className="button" onClick={copy} aria-live="polite">
      {words[state]}
    </button>
  );
}

/** The clipboard exists on https and localhost only. */
async function copyText(text: string): Promise<void> {
  if (!navigator.clipboard) throw new Error("no clipboard here");
  await navigator.clipboard.writeText(text);
}
