import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';

/** One execution of a tool as it reached the destination. */
export interface LedgerEntry {
  readonly tool: string;
  readonly key: string;
  readonly input: unknown;
}

/** The destination of test tools: logs every attempt, applies an effect once per key. */
export interface Ledger {
  readonly url: string;
  readonly attempts: readonly LedgerEntry[];
  /** Keys in the order in which they first took effect. */
  readonly effects: ReadonlySet<string>;
  /** Called with each attempt's number, from 1, before and after its effect; may wait. */
  onAttempt: (number: number, when: 'before' | 'after') => Promise<void> | void;
  close(): Promise<void>;
}

export async function startLedger(): Promise<Ledger> {
  const attempts: LedgerEntry[] = [];
  const effects = new Set<string>();
  const server = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const entry = (await readJson(request)) as LedgerEntry;
      const number = attempts.push(entry);
      await ledger.onAttempt(number, 'before');
      effects.add(entry.key);
      await ledger.onAttempt(number, 'after');
      response.end(JSON.stringify({ done: entry.tool, input: entry.input }));
    };
    handle().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const ledger: Ledger = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    attempts,
    effects,
    onAttempt: () => undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return ledger;
}
