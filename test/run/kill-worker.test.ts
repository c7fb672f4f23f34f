import { withDelivery } from '../../src/testing/replies.js';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { CRASH_STEPS, crashAnswer } from '../support/crash-agent.js';
import { gate } from '../support/gate.js';
import { killTogether } from '../support/kill-together.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';

/**
 * Where the worker is killed: in the nth model call or tool call, or some ms after it was answered.
 */
interface KillPoint {
  readonly where: 'model' | 'tool-before' | 'tool-after' | 'workflow-task';
  readonly nth: number;
  readonly delayMs: number;
}

const TOOL_CALLS = 7;
/** Drawn evenly: the library's own bias towards small numbers would always kill the first step. */
const killPoint: fc.Arbitrary<KillPoint> = fc
  .noBias(fc.tuple(fc.nat(3), fc.nat(999), fc.nat(15)))
  .map(([kind, share, delayMs]): KillPoint => {
    const where =
      (['model', 'tool-before', 'tool-after', 'workflow-task'] as const)[kind] ?? 'model';
    const moments = where.startsWith('tool') ? TOOL_CALLS : CRASH_STEPS + 1;
    return { where, nth: 1 + Math.floor((share / 1_000) * moments), delayMs };
  });

const SEED = Number(process.env['PERDURE_SEED'] ?? 20261121);
/** PERDURE_KILLS=100 takes some minutes more on two cores. */
const KILLS = Number(process.env['PERDURE_KILLS'] ?? 8);
const POINTS = fc.sample(killPoint, { numRuns: KILLS, seed: SEED });

interface Told extends Ended {
  readonly bodies: readonly string[];
  readonly toolAttempts: readonly { key: string }[];
}

/** Runs that share a worker. More of them at once would kill it at fewer moments. */
const AT_ONCE = 10;

let rig: Rig;
let stub: Stub;
let ledger: Ledger;
let home: string;
const UNDISTURBED = `undisturbed-${randomUUID()}`;
const ids = new Map(POINTS.map((point) => [point, `kill-${randomUUID()}`]));
const idOf = (point: KillPoint): string => ids.get(point) ?? '';
const told = new Map<string, Told>();
/** By run: when the answer at its point has gone out. */
const answered = new Map<string, Promise<unknown>>();

beforeAll(
  async () => {
    [rig, stub, ledger] = [await createRig(), await startStub(), await startLedger()];
    home = await mkdtemp(join(tmpdir(), 'perdure-kill-'));
    stub.answer((request) => {
      const step = crashAnswer(request);
      const point = POINTS.find((one) => request.text.includes(idOf(one)));
      const isHeld =
        point !== undefined &&
        !point.where.startsWith('tool') &&
        request.assistantMessages + 1 === point.nth &&
        request.attempt === 1;
      if (!isHeld) return step;
      answered.set(idOf(point), request.ended);
      return withDelivery(step, { holdBeforeHeaders: idOf(point) });
    });
    for (let at = 0; at < POINTS.length; at += AT_ONCE) {
      // One after the other, as each kills a worker of its own.
      // oxlint-disable-next-line no-await-in-loop
      await killAt(POINTS.slice(at, at + AT_ONCE));
    }
  },
  60_000 + 20_000 * KILLS,
);
afterAll(async () => {
  await Promise.all([rig.close(), stub.close(), ledger.close()]);
  await rm(home, { recursive: true, force: true });
});

/** Runs that share a worker, which is killed when each is at its point, and carried on by another one. */
async function killAt(points: readonly KillPoint[]): Promise<void> {
  const doors = new Map(
    points.flatMap((point) => (point.where.startsWith('tool') ? [[idOf(point), gate()]] : [])),
  );
  ledger.onAttempt = async (_, when, entry) => {
    const { run = '' } = entry;
    const point = points.find((one) => idOf(one) === run);
    const number = ledger.attemptsOf(run).indexOf(entry) + 1;
    if (point?.where === `tool-${when}` && number === point.nth) await doors.get(run)?.wait();
  };
  const { handles, stop } = await killTogether(rig.client, {
    env: {
      ADDRESS: inject('temporalAddress'),
      QUEUE: `kill-${randomUUID()}`,
      LEDGER: ledger.url,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
    },
    runs: [
      ...points.map((point) => ({
        id: idOf(point),
        input: { agent: 'crash', message: idOf(point) },
        held: () => (doors.get(idOf(point)) ?? stub.barrier(idOf(point))).reached,
      })),
      ...(told.has(UNDISTURBED)
        ? []
        : [
            {
              id: UNDISTURBED,
              input: { agent: 'crash', message: UNDISTURBED },
              held: (handle: WorkflowHandle) => handle.result(),
            },
          ]),
    ],
    // The moment itself is what is drawn at random, not a wait for something.
    last: async () => {
      const after = points.filter(({ where }) => where === 'workflow-task');
      const longest = Math.max(0, ...after.map(({ delayMs }) => delayMs));
      await Promise.all(
        after.map(async (point) => {
          await pause(longest - point.delayMs);
          stub.barrier(idOf(point)).release();
          await answered.get(idOf(point));
        }),
      );
      await pause(Math.min(longest, ...after.map(({ delayMs }) => delayMs)));
    },
  });
  for (const handle of handles) {
    const { workflowId: id } = handle;
    // oxlint-disable-next-line no-await-in-loop -- they run at the same time
    const ended = await rig.end(handle);
    told.set(id, {
      ...ended,
      bodies: stub.requests.flatMap(({ text }) => (text.includes(id) ? [text] : [])),
      toolAttempts: ledger.attemptsOf(id),
    });
  }
  await stop();
}

function toldOf(id: string): Told {
  const found = told.get(id);
  if (found === undefined) throw new Error(`there is no run ${id}`);
  return found;
}

/** Attempts of the activities of a type, as the history counts them. */
function attempts({ history }: Ended, activity: string): { scheduled: number; started: number } {
  const events = history.events ?? [];
  const scheduled = events.filter(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === activity,
  );
  const known = new Set(scheduled.map(({ eventId }) => String(eventId)));
  const started = events
    .flatMap((event) => event.activityTaskStartedEventAttributes ?? [])
    .filter(({ scheduledEventId }) => known.has(String(scheduledEventId)))
    .reduce((sum, { attempt }) => sum + (attempt ?? 1), 0);
  return { scheduled: scheduled.length, started };
}

describe('a worker killed by SIGKILL', () => {
  const texts = ({ projection, handle }: Told): readonly string[] =>
    (projection.state?.transcript.messages ?? []).map(({ role, text }) =>
      `${role} ${text}`.replaceAll(handle.workflowId, 'go'),
    );

  test('completes the run when it is not killed', () => {
    const undisturbed = toldOf(UNDISTURBED);
    expect(undisturbed.outcome).toMatchObject({
      status: 'completed',
      steps: CRASH_STEPS + 1,
      toolCalls: TOOL_CALLS,
    });
    expect(undisturbed.bodies).toHaveLength(CRASH_STEPS + 1);
    expect(undisturbed.toolAttempts).toHaveLength(TOOL_CALLS);
  });

  test.each(POINTS)(
    'at $where $nth, $delayMs ms: nothing finished is repeated, the outcome is the same',
    (point) => {
      const [killed, undisturbed] = [toldOf(idOf(point)), toldOf(UNDISTURBED)];
      expect(killed.outcome).toEqual(undisturbed.outcome);
      expect(texts(killed)).toEqual(texts(undisturbed));
      const model = attempts(killed, 'callModel');
      expect(model.scheduled).toBe(CRASH_STEPS + 1);
      expect(killed.bodies.length).toBeLessThanOrEqual(model.started);
      // Only what was in flight at the one kill may have come twice.
      expect(killed.bodies.length - new Set(killed.bodies).size).toBeLessThanOrEqual(1);
      const keys = new Set(killed.toolAttempts.map(({ key }) => key));
      expect(keys.size).toBe(TOOL_CALLS);
      for (const key of keys) expect(ledger.effects).toContain(key);
      expect(killed.toolAttempts.length - keys.size).toBeLessThanOrEqual(2);
      expect(killed.toolAttempts.length).toBeLessThanOrEqual(attempts(killed, 'runTool').started);
    },
  );
});
