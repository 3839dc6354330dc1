interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** Items of one page; the server sends no more at once. */
const LIMIT = 200;

/** A whole list that comes page by page, for what people expect to see at once. */
export async function every<T>(
  ask: (query: { limit: number; cursor?: string }) => Promise<Page<T>>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask({ limit: LIMIT, cursor });
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return items;
}
