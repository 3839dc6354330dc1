import { expect, test } from "vitest";
import { every } from "../../src/api/every.ts";

test("a list is fetched page by page until there is none", async () => {
  const pages = [
    { items: [1, 2], next_cursor: "a" },
    { items: [3, 4], next_cursor: "b" },
    { items: [], next_cursor: null },
  ];
  const asked: (string | undefined)[] = [];
  const ask = async ({ cursor }: { cursor?: string }) => {
    asked.push(cursor);
    return pages[asked.length - 1] ?? { items: [], next_cursor: null };
  };
  expect(await every(ask)).toEqual([1, 2, 3, 4]);
  expect(asked).toEqual([undefined, "a", "b"]);
});

test("a page that is refused is an error, not a shorter list", async () => {
  await expect(every(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
});
