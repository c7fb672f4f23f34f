import { setTimeout as pause } from 'node:timers/promises';
import type { PerdureClient } from '../src/client/client-types.js';
import { isObject, parseJson } from '../src/core/text/json.js';
import type { Decision, Request } from '../src/core/transcript/request.js';
import type { Ledger } from './ledger.js';
import { digestOf } from './model.js';
import { integer, seeded, type Random } from './random.js';
import type { ChaosRun } from './traffic.js';

const ROUND_MS = 1_500;
/** A changed call has its part raised by this, so the ledger shows which arguments were used. */
const EDITED = 100;

interface People {
  readonly ledger: Ledger;
  readonly runs: readonly ChaosRun[];
  readonly seed: number;
  readonly signal: AbortSignal;
}

/**
 * Answers the requests of all runs at random times, as people would: approves, denies, changes, and
 * answers. What is decided depends on the request alone, so a decision whose answer was lost is
 * sent again unchanged. Returns the number of accepted decisions.
 */
export async function answerRequests(
  client: PerdureClient,
  { ledger, runs, seed, signal }: People,
): Promise<number> {
  const moments = seeded(seed + 3);
  let answered = 0;
  const answer = async (run: ChaosRun, id: string): Promise<void> => {
    const status = await client.status(id).catch(() => null);
    for (const request of status?.pending ?? []) {
      // Some requests wait for the next round.
      if (request.checking || moments() < 0.3) continue;
      const random = seeded(Number.parseInt(digestOf(`${id} ${request.digest}`).slice(0, 8), 16));
      const decision = decide(run, request, { ledger, random });
      if (decision === null) continue;
      await client.resolve(id, decision).then(
        () => (answered += 1),
        () => undefined,
      );
    }
    // A request has an id of its own; it is decided on the run that asks.
    const below = (status?.below ?? []).map(({ run: child }) => child);
    for (const child of new Set(below)) await answer(run, child);
  };
  while (!signal.aborted) {
    const open = runs.filter(({ isOver }) => !isOver);
    await Promise.all(open.map((run) => answer(run, run.id)));
    await pause(integer(moments, 200, ROUND_MS), undefined, { signal }).catch(() => undefined);
  }
  return answered;
}

/** Returns what a person decides, and notes what may be executed because of it. */
function decide(
  run: ChaosRun,
  { id: request, kind, digest, arguments: json = '', idempotencyKey = '' }: Request,
  { ledger, random }: { readonly ledger: Ledger; readonly random: Random },
): Decision | null {
  const made = { request, digest };
  switch (kind) {
    case 'outcome_unknown':
      // Before the person has a call retried, the bank refuses earlier executions.
      return ledger.lookUpAndFence(idempotencyKey, Date.now())
        ? { ...made, as: 'happened', result: 'found on the statement' }
        : { ...made, as: 'retry' };
    case 'question':
      return { ...made, as: 'answer', result: random() < 0.7 ? 'yes' : 'no' };
    case 'plan': {
      const draw = random();
      if (draw < 0.5) return { ...made, as: 'approve' };
      if (draw < 0.75) return { ...made, as: 'deny' };
      return { ...made, as: 'answer', result: draw < 0.9 ? 'nothing' : 'all but a1' };
    }
    case 'approval': {
      const given = parseJson(json);
      if (!isObject(given)) return null;
      const [at, part] = [String(given['at']), Number(given['part'])];
      const place = `${at}/${part}`;
      const draw = random();
      if (draw < 0.6) {
        run.decided.set(place, place);
        return { ...made, as: 'approve' };
      }
      if (draw < 0.8) {
        const changed = part + EDITED;
        run.decided.set(place, `${at}/${changed}`);
        return { ...made, as: 'edit', arguments: { at, part: changed } };
      }
      run.decided.set(place, null);
      if (draw < 0.9) return { ...made, as: 'deny', note: 'not today' };
      return { ...made, as: 'answer', result: 'it was done by hand' };
    }
    default:
      return null;
  }
}
