import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * One key in sixteen takes effect so long after it arrived that a dead worker is detected first.
 */
const SLOW_KEY = /^0/;
const SLOW_MS = 4_000;

interface Posting {
  readonly tool: string;
  readonly key: string;
  /** Identifies the call and the message that it belongs to: the same in every attempt. */
  readonly at: string;
  /** When the execution was scheduled, Unix time in ms. */
  readonly scheduledAt: number;
}

/** A request of `verify` to look a key up, and to refuse what was scheduled before. */
interface Fence {
  readonly key: string;
  readonly fence: number;
}

/**
 * The ledger that the tools of the chaos run change. It never dies, so it knows what really
 * happened.
 */
export interface Ledger {
  readonly url: string;
  readonly attempts: number;
  /** Payments that arrived after their key was denied, and had no effect. */
  readonly refused: readonly Posting[];
  /** Call → keys under which it took effect. A `once` call lists its key for every execution. */
  readonly paid: ReadonlyMap<string, readonly string[]>;
  readonly put: ReadonlyMap<string, ReadonlySet<string>>;
  /**
   * Returns whether a payment has happened. If not, every execution of it that was scheduled before
   * `fence`, Unix time in ms, is refused from now on.
   */
  lookUpAndFence(key: string, fence: number): boolean;
  close(): Promise<void>;
}

export async function startLedger(): Promise<Ledger> {
  const paid = new Map<string, string[]>();
  const put = new Map<string, Set<string>>();
  const keys = new Set<string>();
  const fences = new Map<string, number>();
  const refused: Posting[] = [];
  let attempts = 0;
  const lookUpAndFence = (key: string, fence: number): boolean => {
    if (keys.has(key)) return true;
    fences.set(key, Math.max(fence, fences.get(key) ?? 0));
    return false;
  };
  /** Returns whether the posting took effect. It does not wait, so no fence comes in between. */
  const enter = (posting: Posting): boolean => {
    const { tool, key, at, scheduledAt } = posting;
    if (tool === 'pay' && scheduledAt < (fences.get(key) ?? 0)) {
      refused.push(posting);
      return false;
    }
    if (tool === 'pay') paid.set(at, [...(paid.get(at) ?? []), key]);
    if (tool === 'put') put.set(at, (put.get(at) ?? new Set()).add(key));
    if (tool !== 'look') keys.add(key);
    return true;
  };
  const server = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const given = (await json(request)) as Posting | Fence;
      if ('fence' in given) {
        const { key, fence } = given;
        // Half of the calls cannot be looked up: a person has to report what happened.
        const isUnsure = Number.parseInt(key.slice(-1), 16) % 2 === 0;
        response.end(isUnsure ? 'unsure' : lookUpAndFence(key, fence) ? 'yes' : 'no');
        return;
      }
      attempts += 1;
      if (SLOW_KEY.test(given.key)) await pause(SLOW_MS);
      if (enter(given)) response.end(`${given.tool} ${given.at} done`);
      else response.writeHead(409).end('the key was denied before');
    };
    handle().catch(() => response.destroy());
  });
  // A worker that thaws still has its open connections.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get attempts() {
      return attempts;
    },
    refused,
    paid,
    put,
    lookUpAndFence,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
