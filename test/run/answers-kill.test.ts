import { withDelivery } from '../../src/testing/replies.js';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { RunInput } from '../../src/core/input/input.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { CONTRACT_ANSWERS, contractAnswer } from '../support/contract-agent.js';
import { killTogether } from '../support/kill-together.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';

/** Where the worker is killed: while the nth answer is pending, or some ms after it was sent. */
interface KillPoint {
  readonly where: 'in' | 'after';
  readonly nth: number;
  readonly delayMs: number;
}

const POINTS: readonly KillPoint[] = [
  { where: 'in', nth: 2, delayMs: 1 },
  { where: 'in', nth: 3, delayMs: 1 },
  { where: 'in', nth: 4, delayMs: 1 },
  { where: 'after', nth: 1, delayMs: 1 },
  { where: 'after', nth: 2, delayMs: 6 },
  { where: 'after', nth: 3, delayMs: 15 },
];
const ATTEMPTS = CONTRACT_ANSWERS.length;

interface EndedRun extends Ended {
  /** The requests as they came, byte for byte, without the id of the run. */
  readonly bodies: readonly string[];
}

let rig: Rig;
let home: string;
let stub: Stub;
const UNDISTURBED = `undisturbed-${randomUUID()}`;
const ids = new Map(POINTS.map((point) => [point, `killed-${randomUUID()}`]));
const idOf = (point: KillPoint): string => ids.get(point) ?? '';
const endedRuns = new Map<string, EndedRun>();

beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  home = await mkdtemp(join(tmpdir(), 'perdure-answers-kill-'));
  await killAtPoints();
});
afterAll(async () => {
  await Promise.all([rig.close(), stub.close()]);
  await rm(home, { recursive: true, force: true });
});

/** Runs on one worker, which is killed when each is at its point, and carried on by a second worker. */
async function killAtPoints(): Promise<void> {
  /** By run: when the answer at its point has gone out. */
  const answered = new Map<string, Promise<unknown>>();
  stub.answer((request) => {
    const step = contractAnswer(request);
    const point = POINTS.find((one) => request.text.includes(idOf(one)));
    const isAt = request.assistantMessages + 1 === point?.nth && request.attempt === 1;
    if (point === undefined || !isAt) return step;
    answered.set(idOf(point), request.ended);
    return withDelivery(step, { holdBeforeHeaders: idOf(point) });
  });
  const input = (id: string): RunInput => ({ agent: 'contract', message: `Ann is 40 ${id}` });
  const { handles, stop } = await killTogether(rig.client, {
    env: {
      ADDRESS: inject('temporalAddress'),
      QUEUE: `answers-kill-${randomUUID()}`,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
    },
    runs: [
      { id: UNDISTURBED, input: input(UNDISTURBED), held: (handle) => handle.result() },
      ...POINTS.map((point) => ({
        id: idOf(point),
        input: input(idOf(point)),
        held: () => stub.barrier(idOf(point)).reached,
      })),
    ],
    last: async () => {
      const after = POINTS.filter(({ where }) => where === 'after');
      const delays = after.map(({ delayMs }) => delayMs);
      await Promise.all(
        after.map(async (point) => {
          // The moment itself is what differs, not a wait for something.
          await pause(Math.max(...delays) - point.delayMs);
          stub.barrier(idOf(point)).release();
          await answered.get(idOf(point));
        }),
      );
      await pause(Math.min(...delays));
    },
  });
  const ends = await Promise.all(handles.map((handle) => rig.end(handle)));
  await stop();
  for (const ended of ends) {
    const { workflowId: id } = ended.handle;
    const bodies = stub.requests.flatMap(({ text }) => (text.includes(id) ? [text] : []));
    endedRuns.set(id, { ...ended, bodies: bodies.map((text) => text.replaceAll(id, '')) });
  }
}

function endedOf(id: string): EndedRun {
  const found = endedRuns.get(id);
  if (found === undefined) throw new Error(`there is no run ${id}`);
  return found;
}

function modelCalls({ history }: Ended): number {
  return (history.events ?? []).filter(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'callModel',
  ).length;
}

const said = ({ projection, handle }: Ended): readonly string[] =>
  projection.messages.map((message) => {
    const side = message.role !== 'tool' && message.side === true;
    const text = message.text.replaceAll(handle.workflowId, '');
    return `${message.n} ${message.role}${side ? ' aside' : ''}: ${text}`;
  });

describe('a worker killed by SIGKILL in a repair', () => {
  test('completes the run when it is not killed', () => {
    const undisturbed = endedOf(UNDISTURBED);
    expect(undisturbed.outcome).toMatchObject({
      status: 'completed',
      output: { name: 'Ann', age: 40 },
      steps: 1,
      usage: { inputTokens: 10 * ATTEMPTS, outputTokens: 5 * ATTEMPTS },
    });
    expect(undisturbed.bodies).toHaveLength(ATTEMPTS);
    expect(said(undisturbed).filter((line) => line.includes('aside'))).toHaveLength(
      2 * (ATTEMPTS - 1),
    );
  });

  test.each(POINTS)(
    '$where answer $nth, $delayMs ms: no attempt that was paid for is paid again',
    (point) => {
      const [killed, undisturbed] = [endedOf(idOf(point)), endedOf(UNDISTURBED)];
      expect(killed.outcome).toEqual(undisturbed.outcome);
      expect(said(killed)).toEqual(said(undisturbed));
      expect(modelCalls(killed)).toBe(ATTEMPTS);
      // The second worker knows the branch from the workflow alone: its requests are the same bytes.
      expect([...new Set(killed.bodies)]).toEqual(undisturbed.bodies);
      const repeated = killed.bodies.filter((body, index) => killed.bodies.indexOf(body) !== index);
      // Only what was in flight at the kill may come twice; a call held open surely does.
      const inFlight = undisturbed.bodies[point.nth - 1];
      if (point.where === 'in') expect(repeated).toEqual([inFlight]);
      else expect(repeated.length).toBeLessThanOrEqual(1);
    },
  );
});
