import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

interface Posting {
  readonly tool: string;
  readonly key: string;
  /** Which call of which message this is: the same in every attempt. */
  readonly at: string;
}

/** What the tools of the chaos run change. It never dies, so it knows what really happened. */
export interface Ledger {
  readonly url: string;
  readonly attempts: number;
  /** Call → keys under which it took effect. A `once` call lists its key for every execution. */
  readonly paid: ReadonlyMap<string, readonly string[]>;
  readonly put: ReadonlyMap<string, ReadonlySet<string>>;
  happened(key: string): boolean;
  close(): Promise<void>;
}

export async function startLedger(): Promise<Ledger> {
  const paid = new Map<string, string[]>();
  const put = new Map<string, Set<string>>();
  const keys = new Set<string>();
  let attempts = 0;
  const server = createServer((request, response) => {
    const asked = new URL(request.url ?? '/', 'http://ledger').searchParams.get('key');
    if (asked !== null) {
      // Half of the calls cannot be looked up: a person has to say what happened.
      const unsure = Number.parseInt(asked.slice(-1), 16) % 2 === 0;
      response.end(unsure ? 'unsure' : keys.has(asked) ? 'yes' : 'no');
      return;
    }
    const post = async (): Promise<void> => {
      const { tool, key, at } = (await json(request)) as Posting;
      attempts += 1;
      if (tool === 'pay') paid.set(at, [...(paid.get(at) ?? []), key]);
      if (tool === 'put') put.set(at, (put.get(at) ?? new Set()).add(key));
      if (tool !== 'look') keys.add(key);
      response.end(`${tool} ${at} done`);
    };
    post().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get attempts() {
      return attempts;
    },
    paid,
    put,
    happened: (key) => keys.has(key),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
