import type { Middleware } from "openapi-fetch";
import { afterEach } from "vitest";
import { api } from "../src/api/client.ts";

export interface Asked {
  what: string;
  ifMatch: string | null;
  body: unknown;
}

interface Answer {
  status?: number;
  body: unknown;
  etag?: string;
}

const servers: Middleware[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) api.eject(server);
});

/**
 * A server that gives these answers by method and path, one after the other, the last again and again; returns what it
 * was asked.
 */
export function serve(answers: Record<string, Answer[]>): Asked[] {
  const asked: Asked[] = [];
  const server: Middleware = {
    async onRequest({ request }) {
      const what = `${request.method} ${new URL(request.url).pathname}`;
      const text = await request.clone().text();
      asked.push({ what, ifMatch: request.headers.get("If-Match"), body: text ? JSON.parse(text) : null });
      const left = answers[what] ?? [{ status: 404, body: { detail: `no ${what}` } }];
      const { status = 200, body, etag } = (left.length > 1 ? left.shift() : left[0]) as Answer;
      const headers = { "Content-Type": "application/json", ...(etag ? { ETag: etag } : {}) };
      return new Response(JSON.stringify(body), { status, headers });
    },
  };
  servers.push(server);
  api.use(server);
  return asked;
}
