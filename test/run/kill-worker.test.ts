import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startStub } from '../../src/testing/stub-server.js';
import { CRASH_STEPS, crashAnswer } from '../support/crash-agent.js';
import { startLedger } from '../support/ledger.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';
import { workerChild, workerHere } from '../support/worker-child.js';

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
/** PERDURE_KILLS=100 takes some minutes longer on two cores. */
const KILLS = Number(process.env['PERDURE_KILLS'] ?? 5);
const POINTS = fc.sample(killPoint, { numRuns: KILLS, seed: SEED });

interface KillReport extends Ended {
  readonly modelRequests: number;
  readonly bodies: readonly string[];
  readonly toolAttempts: readonly { key: string }[];
  readonly effects: number;
}

let rig: Rig;
let home: string;
beforeAll(async () => {
  rig = await createRig();
  home = await mkdtemp(join(tmpdir(), 'perdure-kill-'));
});
afterAll(async () => {
  await rig.close();
  await rm(home, { recursive: true, force: true });
});

/**
 * Runs an agent on its own worker, kills the worker at the point, and continues on a second worker.
 */
async function runWithKill(point: KillPoint | null): Promise<KillReport> {
  const [stub, ledger] = [await startStub(), await startLedger()];
  const queue = `kill-${randomUUID()}`;
  const env = {
    ADDRESS: inject('temporalAddress'),
    QUEUE: queue,
    LEDGER: ledger.url,
    OPENAI_BASE_URL: stub.baseUrl,
    PERDURE_HOME: home,
  };
  const first = await workerChild(env);
  const reached = new Promise<void>((resolve) => {
    if (point === null) return;
    stub.answer((request) => {
      if (request.number === point.nth) {
        if (point.where === 'model') resolve();
        if (point.where === 'workflow-task') void request.ended.then(() => resolve());
      }
      const step = crashAnswer(request);
      const held = point.where === 'model' && request.number === point.nth;
      return held ? { ...step, delivery: { holdBeforeHeaders: 'never' } } : step;
    });
    ledger.onAttempt = (number, when) => {
      if (number !== point.nth || point.where !== `tool-${when}`) return undefined;
      resolve();
      return new Promise(() => undefined);
    };
  });
  if (point === null) stub.answer(crashAnswer);
  const handle = await rig.client.workflow.start('agent', {
    taskQueue: queue,
    workflowId: queue,
    args: [{ agent: 'crash', message: 'go' }],
  });
  let second: { stop(): Promise<void> } | undefined;
  if (point !== null) {
    await reached;
    // The delay itself is drawn at random; it does not wait for anything.
    if (point.where === 'workflow-task') await pause(point.delayMs);
    await first.kill();
    second = await workerHere(env);
  }
  const ended = await rig.end(handle);
  await Promise.all([first.kill(), second?.stop(), stub.close(), ledger.close()]);
  return {
    ...ended,
    modelRequests: stub.requestCount,
    bodies: stub.requests.map(({ text }) => text),
    toolAttempts: ledger.attempts,
    effects: ledger.effects.size,
  };
}

/** Attempts of the activities of a type, as the history counts them. */
function attempts({ history }: Ended, activity: string): { scheduled: number; started: number } {
  const events = history.events ?? [];
  const scheduled = events.filter(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === activity,
  );
  const ids = new Set(scheduled.map(({ eventId }) => String(eventId)));
  const started = events
    .flatMap((event) => event.activityTaskStartedEventAttributes ?? [])
    .filter(({ scheduledEventId }) => ids.has(String(scheduledEventId)))
    .reduce((sum, { attempt }) => sum + (attempt ?? 1), 0);
  return { scheduled: scheduled.length, started };
}

describe('a worker killed by SIGKILL', () => {
  let baseline: KillReport;
  beforeAll(async () => {
    baseline = await runWithKill(null);
  });

  const texts = (report: KillReport): readonly string[] =>
    (report.projection.state?.transcript.messages ?? []).map(({ role, text }) => `${role} ${text}`);

  test('serves as the baseline when it is not killed', () => {
    expect(baseline.outcome).toMatchObject({
      status: 'completed',
      steps: CRASH_STEPS + 1,
      toolCalls: TOOL_CALLS,
    });
    expect(baseline.modelRequests).toBe(CRASH_STEPS + 1);
    expect(baseline.toolAttempts).toHaveLength(TOOL_CALLS);
  });

  test.concurrent.each(POINTS)(
    'at $where $nth, $delayMs ms: nothing completed is repeated, and the outcome is the same',
    { timeout: 180_000 },
    async (point) => {
      const report = await runWithKill(point);
      expect(report.outcome).toEqual(baseline.outcome);
      expect(texts(report)).toEqual(texts(baseline));
      const model = attempts(report, 'callModel');
      expect(model.scheduled).toBe(CRASH_STEPS + 1);
      expect(report.modelRequests).toBeLessThanOrEqual(model.started);
      // Only what was in flight at the one kill may have occurred twice.
      expect(report.modelRequests - new Set(report.bodies).size).toBeLessThanOrEqual(1);
      const keys = new Set(report.toolAttempts.map(({ key }) => key));
      expect(keys.size).toBe(TOOL_CALLS);
      expect(report.effects).toBe(TOOL_CALLS);
      expect(report.toolAttempts.length - keys.size).toBeLessThanOrEqual(2);
      expect(report.toolAttempts.length).toBeLessThanOrEqual(attempts(report, 'runTool').started);
    },
  );
});
