import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { MAX_DURABLE_MS } from '../../src/core/text/text.js';
import type { History } from '../../src/history/history-event.js';
import { ask, obedientModel, outcomeOf } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';
import { rubbish } from '../support/hostile-json.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'clerk', instructions: 'do as told', model: 'm' });
  await rig.worker([agent], { models: { m: obedientModel() } });
});
afterAll(async () => await rig.close());

const SEED = 20_261_122;
const samples = (names: readonly string[], count: number): readonly unknown[] =>
  fc.sample(rubbish(names), { numRuns: count, seed: SEED });
const failedTasks = ({ events }: History): number =>
  (events ?? []).filter((event) => event.workflowTaskFailedEventAttributes).length;

/** Starts a run with these arguments, as any Temporal client may. */
async function startWith(args: unknown[], rest: object = {}): Promise<WorkflowHandle> {
  const { taskQueue, client } = rig;
  const workflowId = `rubbish-${randomUUID()}`;
  return await client.workflow.start('agent', { taskQueue, workflowId, args, ...rest });
}

/** Why a run did not begin; fails if a workflow task has failed meanwhile. */
async function refusal(handle: WorkflowHandle): Promise<string> {
  const error: unknown = await handle.result().then(
    () => new Error('it completed'),
    (failure: unknown) => failure,
  );
  expect(failedTasks(await handle.fetchHistory())).toBe(0);
  const { cause } = error as { cause?: Error };
  return cause?.message ?? String(error);
}

describe('a start', () => {
  const input = { agent: 'clerk', message: 'go' };

  test('with rubbish for its input fails with a text, and fails no workflow task', async () => {
    const odd = samples(['agent', 'message', 'open', 'limits', 'tags'], 12);
    const known = [
      { ...input, contextBlob: { sha256: { toString: 1 } } },
      { ...input, agent: `${'a'.repeat(58)}😀${'b'.repeat(2_000)}` },
      { ...input, ['\ud800'.repeat(9_000)]: 1 },
      { ...input, tags: Array.from({ length: 60 }, () => 'x'.repeat(200)) },
      { ...input, called: { key: 'a'.repeat(64) } },
    ];
    const handles = await Promise.all([...known, ...odd].map((value) => startWith([value])));
    for (const why of await Promise.all(handles.map(refusal))) expect(why).toMatch(/^input: ./);
  });

  test('with a forged state is refused, even if the server retries it', async () => {
    const forged = { schema: 1, state: {}, shown: '' };
    expect(await refusal(await startWith([input, forged]))).toContain('carried: expected no');
    const retried = await startWith([input, forged], { retry: { maximumAttempts: 3 } });
    expect(await refusal(retried)).toContain('retryPolicy: expected none');
    const repeated = await startWith([input, forged], { cronSchedule: '@every 1s' });
    const { runId } = await repeated.describe();
    const first = rig.client.workflow.getHandle(repeated.workflowId, runId, { followRuns: false });
    await first.result().catch(() => undefined);
    const history = await first.fetchHistory();
    const end = history.events?.at(-1)?.workflowExecutionFailedEventAttributes;
    expect(end?.failure?.message).toMatch(/cronSchedule: expected none.*Temporal schedule/);
    expect(failedTasks(history)).toBe(0);
    await rig.client.workflow.getHandle(repeated.workflowId).terminate();
  });

  test('with limits beyond the range of any timer still begins', async () => {
    const limits = { wallMs: 1e300, run: { wallMs: 2 ** 53 } };
    const { outcome } = await rig.run({ ...input, limits });
    expect(outcome.status).toBe('completed');
  });
});

test('a run that receives hundreds of malformed messages answers, and completes', async () => {
  const handle = await startWith([{ agent: 'clerk', open: true, message: 'one' }]);
  await outcomeOf(handle, 1);
  const names = ['message', 'id', 'mode', 'call', 'as', 'result', 'steps', 'turn', 'from', 'to'];
  const updates = ['ask', 'resolve', 'setLimits', 'cancelTurn', 'outcome', 'resume', 'unknown'];
  const queries = ['transcript', 'prompt', 'status', 'pending', 'definition'];
  const pieces = samples(names, 105);
  for (let from = 0; from < pieces.length; from += 7) {
    const sent = pieces
      .slice(from, from + 7)
      .flatMap((value, index) => [
        handle.executeUpdate(updates[index] ?? 'ask', { args: [value] }),
        handle.query(queries[index % queries.length] ?? 'status', value),
        handle.signal(`signal-${index}`, value),
      ]);
    await Promise.allSettled(sent);
  }
  const limited = async (wallMs: number) =>
    await handle.executeUpdate('setLimits', { args: [{ wallMs }] });
  await expect(limited(1e300)).rejects.toMatchObject({
    cause: { message: expect.stringContaining('wallMs') as string },
  });
  await limited(MAX_DURABLE_MS);
  const { turn } = await ask(handle, 'still there?');
  expect(await outcomeOf(handle, turn)).toMatchObject({ answer: 'done: still there?' });
  await handle.executeUpdate('close', { args: [{ odd: 1 }] });
  expect(await handle.result()).toMatchObject({ status: 'completed', reason: 'closed' });
  expect(failedTasks(await handle.fetchHistory())).toBe(0);
});
