import { isRecord } from "../../../forms/schema.ts";

export interface Change {
  path: string;
  before: unknown;
  after: unknown;
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
