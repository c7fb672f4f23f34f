import { setTimeout as pause } from 'node:timers/promises';
import { startStub } from '../../src/testing/stub-server.js';
import { startLedger } from '../../test/support/ledger.js';
import { stubAnswer } from '../subject/models.js';

/** A request that reached the model or a tool's destination. `at`: Unix time in milliseconds. */
export interface Arrival {
  /** The step of a model call, or the idempotency key of a tool call. */
  readonly what: number | string;
  readonly at: number;
}

/** Everything outside perdure that a run talks to, with a record of what arrived when. */
export interface Destinations {
  readonly modelUrl: string;
  readonly ledgerUrl: string;
  readonly modelCalls: readonly Arrival[];
  readonly toolAttempts: readonly Arrival[];
  /** The requests that are being answered at this moment. */
  readonly inFlight: { readonly model: number; readonly tool: number };
  /** Resolves when the first model call has arrived; the call is held until `release`. */
  readonly held: Promise<void>;
  release(): void;
  /**
   * Resolves with the nth arrival of either kind, counted from 1; the held call arrives when it is
   * released.
   */
  arrived(nth: number): Promise<void>;
  close(): Promise<void>;
}

/** Long enough that kills hit model calls and tools as often as the gaps between them. */
const ANSWER_MS = 20;
const GATE = 'second worker is up';

export async function startDestinations(): Promise<Destinations> {
  const [stub, ledger] = [await startStub({ keep: 1 }), await startLedger()];
  const modelCalls: Arrival[] = [];
  const toolAttempts: Arrival[] = [];
  const inFlight = { model: 0, tool: 0 };
  let count = 0;
  const waiting = new Map<number, () => void>();
  const arrive = (): void => {
    count += 1;
    waiting.get(count)?.();
  };
  stub.answer((request) => {
    modelCalls.push({ what: request.assistantMessages, at: Date.now() });
    inFlight.model += 1;
    void request.ended.then(() => (inFlight.model -= 1));
    const isFirst = modelCalls.length === 1;
    if (!isFirst) arrive();
    return stubAnswer(request, {
      delay: ANSWER_MS,
      ...(isFirst && { holdBeforeHeaders: GATE }),
    });
  });
  ledger.onAttempt = async (number, when) => {
    if (when === 'after') {
      inFlight.tool -= 1;
      return;
    }
    toolAttempts.push({ what: ledger.attempts[number - 1]?.key ?? '', at: Date.now() });
    inFlight.tool += 1;
    arrive();
    await pause(ANSWER_MS);
  };
  return {
    modelUrl: stub.baseUrl,
    ledgerUrl: ledger.url,
    modelCalls,
    toolAttempts,
    inFlight,
    held: stub.barrier(GATE).reached,
    release() {
      stub.barrier(GATE).release();
      arrive();
    },
    arrived: (nth) => new Promise((resolve) => void waiting.set(nth, resolve)),
    async close() {
      await Promise.all([stub.close(), ledger.close()]);
    },
  };
}
