/** A value of a sweep's key as people read it; nothing where the run keeps what the others have in common. */
export function pointValue(point: Record<string, unknown> | null, key: string): string {
  if (!point || !(key in point)) return "";
  const value = point[key];
  if (value === null) return "default";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** "drafter.draft_length" -> "draft_length"; the whole key where two would be called the same. */
export function keyTitle(key: string, keys: string[]): string {
  const last = (path: string) => path.slice(path.lastIndexOf(".") + 1);
  return keys.filter((other) => last(other) === last(key)).length > 1 ? key : last(key);
}
