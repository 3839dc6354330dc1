import type { FormState } from "../../forms/values.ts";
import { type GatesDraft, NO_GATES } from "./gates.ts";

/** Everything that the reader can enter on the launch page. */
export interface Draft {
  name: string;
  /** Empty for the one that goes without saying. */
  project: string;
  cluster: string;
  labels: string;
  notes: string;
  maxAttempts: unknown;
  /** In the queue; undefined for 0. */
  priority: unknown;
  gates: GatesDraft;
  form: FormState;
}

export const EMPTY_FORM: FormState = { values: {}, memory: {} };
export const EMPTY_DRAFT: Draft = {
  name: "",
  project: "",
  cluster: "local",
  labels: "",
  notes: "",
  maxAttempts: undefined,
  priority: undefined,
  gates: NO_GATES,
  form: EMPTY_FORM,
};

const key = (source: string) => `foredeck-launch ${source}`;

/** Keeps what was typed, in this tab, through a reload or a new login. */
export function saveDraft(source: string, draft: Draft): void {
  try {
    sessionStorage.setItem(key(source), JSON.stringify(draft));
  } catch {
    // Storage is blocked or full: the page alone keeps it.
  }
}

export function loadDraft(source: string): Draft | null {
  try {
    const stored = sessionStorage.getItem(key(source));
    return stored ? { ...EMPTY_DRAFT, ...(JSON.parse(stored) as Partial<Draft>) } : null;
  } catch {
    return null;
  }
}

export function forgetDraft(source: string): void {
  try {
    sessionStorage.removeItem(key(source));
  } catch {
    // Storage is blocked.
  }
}

const LABEL = /[^,:]*:\s*"(?:[^"\\]|\\.)*"\s*(?=,|$)|[^,]+/g;

/** "team: post-training, smoke, note: \"a, b\"" -> {team: "post-training", smoke: "", note: "a, b"}. */
export function parseLabels(text: string): Record<string, string> {
  const parts = (text.match(LABEL) ?? []).map((part) => part.trim());
  const entries = parts.filter(Boolean).map((part) => {
    const colon = part.indexOf(":");
    return colon < 0 ? [part, ""] : [part.slice(0, colon).trim(), unquoted(part.slice(colon + 1).trim())];
  });
  return Object.fromEntries(entries);
}

export function labelsText(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([name, value]) => (value ? `${name}: ${quoted(value)}` : name))
    .join(", ");
}

/** A value that would not be read as it is. */
function quoted(value: string): string {
  return /[,"]|^\s|\s$/.test(value) ? JSON.stringify(value) : value;
}

function unquoted(value: string): string {
  if (!/^".*"$/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
