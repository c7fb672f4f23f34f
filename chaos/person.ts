import { setTimeout as pause } from 'node:timers/promises';
import type { PerdureClient } from '../src/client/client-types.js';
import type { Ledger } from './ledger.js';
import type { ChaosRun } from './traffic.js';

const ROUND_MS = 2_000;

/**
 * Resolves calls with an unknown outcome, as a person at the bank would. Before the person has a
 * call retried, the bank refuses earlier executions that are still on their way.
 */
export async function answerUnknowns(
  client: PerdureClient,
  { ledger, runs, signal }: { ledger: Ledger; runs: readonly ChaosRun[]; signal: AbortSignal },
): Promise<number> {
  let answered = 0;
  while (!signal.aborted) {
    for (const run of runs.filter(({ isOver }) => !isOver)) {
      const status = await client.status(run.id).catch(() => null);
      for (const { kind, id: request, digest, idempotencyKey = '' } of status?.pending ?? []) {
        if (kind !== 'outcome_unknown') continue;
        const decision = ledger.lookUpAndFence(idempotencyKey, Date.now())
          ? ({ request, digest, as: 'happened', result: 'found on the statement' } as const)
          : ({ request, digest, as: 'retry' } as const);
        await client.resolve(run.id, decision).then(
          () => (answered += 1),
          () => undefined,
        );
      }
    }
    await pause(ROUND_MS, undefined, { signal }).catch(() => undefined);
  }
  return answered;
}
