import type { Tagged } from "../api/client.ts";
import { ApiProblem } from "../api/problem.ts";

/** Something that several people may edit: how it is loaded and saved, and what of it can be changed. */
export interface Editable<T extends object, Body extends object> {
  load: () => Promise<Tagged<T>>;
  /** Saves only if it is still of the version that the tag is of. */
  save: (body: Body, headers: { "If-Match"?: string }) => Promise<T>;
  /** Every field that can be changed, with its name for readers. */
  fields: { [Field in keyof Body & string]-?: string };
}

/** A field that somebody else has changed. */
export interface FieldChange {
  field: string;
  name: string;
  before: unknown;
  now: unknown;
}

/** Somebody else was faster: nothing was saved. */
export class EditConflict<T = unknown> extends Error {
  constructor(
    /** As it is now. */
    readonly theirs: T,
    readonly changes: FieldChange[],
  ) {
    super("Somebody else has changed this meanwhile. Nothing was saved.");
    this.name = "EditConflict";
  }
}

/**
 * Saves a change of what the reader has seen, unless somebody else has changed it since.
 *
 * What is there now is loaded and compared with what was seen; whoever changes it between that and the save is
 * noticed by the server, which refuses the tag. Throws an EditConflict that says what they changed.
 */
export async function saveEdit<T extends object, Body extends object>(
  editable: Editable<T, Body>,
  seen: T,
  body: Body,
): Promise<T> {
  const now = await editable.load();
  refuseChanged(editable, seen, now.value);
  try {
    return await editable.save(body, now.etag === null ? {} : { "If-Match": now.etag });
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.status !== 412) throw error;
    const { value } = await editable.load();
    throw new EditConflict(value, changesBetween(editable.fields, seen, value));
  }
}

function refuseChanged<T extends object, Body extends object>(
  editable: Editable<T, Body>,
  seen: T,
  now: T,
): void {
  const changes = changesBetween(editable.fields, seen, now);
  if (changes.length > 0) throw new EditConflict(now, changes);
}

/** Which of the fields differ. */
export function changesBetween(fields: Record<string, string>, before: object, now: object): FieldChange[] {
  const [old, current] = [before as Record<string, unknown>, now as Record<string, unknown>];
  return Object.entries(fields)
    .filter(([field]) => stable(old[field]) !== stable(current[field]))
    .map(([field, name]) => ({ field, name, before: old[field], now: current[field] }));
}

/** As text that is equal for equal values, whatever the order of their keys. */
function stable(value: unknown): string {
  return JSON.stringify(value ?? null, (_, inner) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
