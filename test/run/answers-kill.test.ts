import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startStub } from '../../src/testing/stub-server.js';
import { CONTRACT_ANSWERS, contractAnswer } from '../support/contract-agent.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';
import { workerChild, workerHere } from '../support/worker-child.js';

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

interface KillReport extends Ended {
  /** The requests as they arrived, byte for byte. */
  readonly bodies: readonly string[];
}

let rig: Rig;
let home: string;
let baseline: KillReport;
beforeAll(async () => {
  rig = await createRig();
  home = await mkdtemp(join(tmpdir(), 'perdure-answers-kill-'));
  baseline = await runWithKill(null);
});
afterAll(async () => {
  await rig.close();
  await rm(home, { recursive: true, force: true });
});

/**
 * Runs an agent on its own worker, kills the worker at the point, and continues on a second worker.
 */
async function runWithKill(point: KillPoint | null): Promise<KillReport> {
  const stub = await startStub();
  const queue = `answers-kill-${randomUUID()}`;
  const env = {
    ADDRESS: inject('temporalAddress'),
    QUEUE: queue,
    OPENAI_BASE_URL: stub.baseUrl,
    PERDURE_HOME: home,
  };
  const reached = new Promise<void>((resolve) => {
    stub.answer((request) => {
      const step = contractAnswer(request);
      if (request.number !== point?.nth) return step;
      if (point.where === 'in') {
        resolve();
        return { ...step, delivery: { holdBeforeHeaders: 'never' } };
      }
      void request.ended.then(() => resolve());
      return step;
    });
  });
  const first = await workerChild(env);
  let second: { stop(): Promise<void> } | undefined;
  const handle = await rig.client.workflow.start('agent', {
    taskQueue: queue,
    workflowId: queue,
    args: [{ agent: 'contract', message: 'Ann is 40' }],
  });
  if (point !== null) {
    await reached;
    // The delay itself varies; it does not wait for anything.
    await pause(point.delayMs);
    await first.kill();
    second = await workerHere(env);
  }
  const ended = await rig.end(handle);
  await Promise.all([first.kill(), second?.stop(), stub.close()]);
  return { ...ended, bodies: stub.requests.map(({ text }) => text) };
}

function modelCalls({ history }: Ended): number {
  return (history.events ?? []).filter(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'callModel',
  ).length;
}

const textsOf = ({ projection }: Ended): readonly string[] =>
  projection.messages.map((message) => {
    const side = message.role !== 'tool' && message.side === true;
    return `${message.n} ${message.role}${side ? ' aside' : ''}: ${message.text}`;
  });

describe('a worker killed by SIGKILL during a repair', () => {
  test('serves as the baseline when it is not killed', () => {
    expect(baseline.outcome).toMatchObject({
      status: 'completed',
      output: { name: 'Ann', age: 40 },
      steps: 1,
      usage: { inputTokens: 10 * ATTEMPTS, outputTokens: 5 * ATTEMPTS },
    });
    expect(baseline.bodies).toHaveLength(ATTEMPTS);
    expect(textsOf(baseline).filter((line) => line.includes('aside'))).toHaveLength(
      2 * (ATTEMPTS - 1),
    );
  });

  test.concurrent.each(POINTS)(
    '$where answer $nth, $delayMs ms: no attempt that was paid for is paid again',
    { timeout: 180_000 },
    async (point) => {
      const report = await runWithKill(point);
      expect(report.outcome).toEqual(baseline.outcome);
      expect(textsOf(report)).toEqual(textsOf(baseline));
      expect(modelCalls(report)).toBe(ATTEMPTS);
      // The second worker knows the branch from the workflow alone: its requests have the same
      // bytes.
      expect([...new Set(report.bodies)]).toEqual(baseline.bodies);
      const repeated = report.bodies.filter((body, index) => report.bodies.indexOf(body) !== index);
      // Only what was in flight at the kill may occur twice; a call that was held open always does.
      const inFlight = baseline.bodies[point.nth - 1];
      if (point.where === 'in') expect(repeated).toEqual([inFlight]);
      else expect(repeated.length).toBeLessThanOrEqual(1);
    },
  );
});
