import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';

/** One execution of a tool as it reached the destination. */
export interface LedgerEntry {
  readonly tool: string;
  readonly key: string;
  readonly input: unknown;
  /** The workflow id of the run; absent if the tool does not send it. */
  readonly run?: string;
  /** When the execution was scheduled, Unix time in ms; absent if the tool does not send it. */
  readonly scheduledAt?: number;
}

/** A request to look a key up, and to refuse every execution of it that was scheduled before. */
interface Fence {
  readonly key: string;
  readonly fence: number;
}

/** The destination of test tools: logs every attempt, applies an effect once per key. */
export interface Ledger {
  readonly url: string;
  readonly attempts: readonly LedgerEntry[];
  /** Keys in the order in which they first took effect. */
  readonly effects: ReadonlySet<string>;
  /** Executions that arrived after a fence of their key, and had no effect. */
  readonly refused: readonly LedgerEntry[];
  /** Called with each attempt's number, from 1, before and after its effect; may wait. */
  onAttempt: (number: number, when: 'before' | 'after', entry: LedgerEntry) => Promise<void> | void;
  /** The attempts of one run and its children, where all tools send theirs. */
  attemptsOf(run: string): readonly LedgerEntry[];
  close(): Promise<void>;
}

export async function startLedger(): Promise<Ledger> {
  const attempts: LedgerEntry[] = [];
  const effects = new Set<string>();
  const refused: LedgerEntry[] = [];
  const fences = new Map<string, number>();
  const server = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const entry = (await readJson(request)) as LedgerEntry | Fence;
      const { key } = entry;
      if ('fence' in entry) {
        fences.set(key, Math.max(entry.fence, fences.get(key) ?? 0));
        response.end(JSON.stringify({ happened: effects.has(key) }));
        return;
      }
      const number = attempts.push(entry);
      await ledger.onAttempt(number, 'before', entry);
      if ((entry.scheduledAt ?? Infinity) < (fences.get(key) ?? 0)) {
        refused.push(entry);
        response.writeHead(409).end(JSON.stringify({ refused: key }));
        return;
      }
      effects.add(key);
      await ledger.onAttempt(number, 'after', entry);
      response.end(JSON.stringify({ done: entry.tool, input: entry.input }));
    };
    handle().catch(() => response.destroy());
  });
  // A frozen worker still has its open connection when it continues.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const ledger: Ledger = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    attempts,
    effects,
    refused,
    onAttempt: () => undefined,
    attemptsOf: (run) => attempts.filter((entry) => entry.run?.startsWith(run)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return ledger;
}
