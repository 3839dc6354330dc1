import { isRecord, type ObjectNode } from "../../../forms/schema.ts";
import { getAt, withoutDefaults } from "../../../forms/values.ts";

export interface Change {
  path: string;
  before: unknown;
  after: unknown;
}

/**
 * What is worth telling of the difference: where one of the two has another kind of a part, only settings that were
 * changed from that kind's defaults, since the kind says the rest.
 */
export function notableDifference(root: ObjectNode, before: unknown, after: unknown): Change[] {
  const [setBefore, setAfter] = [withoutDefaults(root, before), withoutDefaults(root, after)];
  return difference(before, after).filter((change) => {
    const path = change.path.split(".");
    if (change.before === undefined) return getAt(setAfter, path) !== undefined;
    return change.after !== undefined || getAt(setBefore, path) !== undefined;
  });
}

/** The settings in which two configurations differ; undefined where one of them has no such setting. */
export function difference(before: unknown, after: unknown, path = ""): Change[] {
  if (isRecord(before) || isRecord(after)) {
    const [left, right] = [isRecord(before) ? before : {}, isRecord(after) ? after : {}];
    const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])];
    return keys.flatMap((key) => difference(left[key], right[key], path ? `${path}.${key}` : key));
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
}
