import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { limits, resolve } from '../../src/cli/commands/limits.js';
import { cancel } from '../../src/cli/commands/pause.js';
import { status } from '../../src/cli/commands/status.js';
import { readWorkerPresence } from '../../src/cli/hosting/server-notes.js';
import { readRun } from '../../src/history/read-run.js';
import { toRunStatus } from '../../src/client/status.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { ModelError, type Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { createGate, type Gate } from '../../src/testing/play.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';
import { workerChild } from '../support/worker-child.js';

let rig: Rig;
/** The gates that held runs wait for, by message. */
const gates = new Map<string, Gate>();

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.string() }),
  effect: 'read',
  async execute({ at }, { signal }) {
    await gates.get(at)?.wait(signal);
    return 'seen';
  },
});
const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ order: z.number() }),
  effect: 'once',
  timeout: 200,
  execute: () => new Promise(() => undefined),
});

/** Acts on the first message. */
const model: Model = {
  async call({ messages }, { signal }) {
    const text = messages[0]?.text ?? '';
    const [word] = text.split(' ');
    if (word === 'hold') await gates.get(text)?.wait(signal);
    if (word === 'keyless') {
      throw new ModelError('the key is wrong: set OPENAI_API_KEY', {
        kind: 'credentials',
        type: 'http_401',
        status: 401,
        requestId: 'req_401',
      });
    }
    if (word === 'busy') {
      if (!failedOnce.has(text)) {
        failedOnce.add(text);
        throw new ModelError('slow down', { kind: 'retry', type: 'rate_limit', status: 429 });
      }
      await gates.get(text)?.wait(signal);
    }
    if (messages.length === 1 && word === 'look') return replyCall('look', { at: text });
    if (messages.length === 1 && word === 'pay') return replyCall('pay', { order: 17 });
    return replyText(`done: ${text}\u001b[2J`);
  },
};
const failedOnce = new Set<string>();

beforeAll(async () => {
  rig = await createRig();
  await rig.worker(
    [defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [look, pay] })],
    { models: { m: model } },
  );
});
afterAll(async () => {
  for (const { barrier } of gates.values()) barrier.release();
  await rig.close();
});

async function begin(word: string): Promise<{ handle: WorkflowHandle; gate: Gate['barrier'] }> {
  const text = `${word} ${randomUUID()}`;
  const gate = createGate();
  gates.set(text, gate);
  return { handle: await rig.start({ agent: 'a', message: text }), gate: gate.barrier };
}

async function ask(id: string, how: { readonly json?: boolean } = {}): Promise<CommandOutput> {
  return await runInProcess(
    status,
    { id },
    { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue, ...how },
  );
}

async function statusOf(id: string): Promise<RunStatus> {
  const { stdout } = await ask(id, { json: true });
  expect(stdout.split('\n')).toHaveLength(1);
  return JSON.parse(stdout) as RunStatus;
}

/**
 * The fields that the command and the query must agree on. The command's `doing` is more precise,
 * and it reads events that the run has yet to process.
 */
function shared(shown: RunStatus): Partial<RunStatus> {
  const { doing: _, inFlight: __, historyLength: ___, pending, ...rest } = shown;
  return { ...rest, pending: pending.map((each) => ({ ...each, fix: '' })) };
}

describe('the status of an open run', () => {
  test('names the current model call, like the query', async () => {
    const { handle, gate } = await begin('hold');
    await gate.reached;
    const shown = await statusOf(handle.workflowId);
    expect(shown).toMatchObject({ status: 'working', reason: null, turn: 1, step: 0, agent: 'a' });
    expect(shown.doing).toMatch(/^m, step 1 \(\d+ s\)$/);
    expect(shown.inFlight).toMatchObject([{ on: 'model', attempt: 1, failures: [] }]);
    expect(shared(shown)).toEqual(shared(await handle.query<RunStatus>('status')));
    const { stdout, stderr, code } = await ask(handle.workflowId);
    expect(stdout).toContain(`attach ${handle.workflowId}`);
    expect(stdout).toMatch(/^worker +last poll \d+ s ago by \d+@/m);
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    gate.release();
    await rig.end(handle);
  });

  test('names the running tool with its arguments', async () => {
    const { handle, gate } = await begin('look');
    await gate.reached;
    const shown = await statusOf(handle.workflowId);
    expect(shown.doing).toMatch(/^look look [\da-f-]{36} \(\d+ s\)$/);
    expect(shown).toMatchObject({ status: 'working', step: 1 });
    gate.release();
    await rig.end(handle);
  });

  test('shows failed attempts during and after the next one', async () => {
    const { handle, gate } = await begin('busy');
    await gate.reached;
    const report = { type: 'rate_limit', status: 429, attempt: 1, message: 'slow down' };
    const shown = await statusOf(handle.workflowId);
    expect(shown.doing).toMatch(/^m, step 1 \(\d+ s, attempt 2\)$/);
    expect(shown.reports).toEqual([expect.objectContaining(report)]);
    const { stdout } = await ask(handle.workflowId);
    expect(stdout).toMatch(/rate_limit 429 {2}attempt 1 {2}next after [\d.]+ s .*slow down/);
    gate.release();
    await rig.end(handle);
    expect((await statusOf(handle.workflowId)).reports).toEqual([expect.objectContaining(report)]);
  });

  test('shows why the run is blocked, and the commands to run', async () => {
    const { handle } = await begin('keyless');
    const id = handle.workflowId;
    await until(handle, 'blocked');
    const shown = await statusOf(id);
    expect(shown).toMatchObject({
      status: 'blocked',
      reason: 'credentials',
      message: expect.stringMatching(/^worker \d+@\S+: the key is wrong: set OPENAI_API_KEY$/),
      reports: [{ type: 'http_401', status: 401, attempt: 1, requestId: 'req_401' }],
      outcome: null,
    });
    expect(shared(shown)).toEqual(shared(await handle.query<RunStatus>('status')));
    const { stdout } = await ask(id);
    expect(stdout).toMatch(/^status +blocked \(credentials\)$/m);
    expect(stdout).toMatch(new RegExp(`resume ${id} --address`));
    expect(stdout).toContain('req_401');
    expect(stdout.match(/the key is wrong/g)).toHaveLength(1);
    await handle.cancel();
    await rig.end(handle);
    // What applied to a run can be read after its end.
    const place = { address: inject('temporalAddress'), home: rig.home };
    const ended = await runInProcess(limits, { id }, place);
    expect(ended.stdout).toMatch(/^steps +\d+ /m);
  });

  test('shows the decision that a person has to make, with the idempotency key', async () => {
    const { handle } = await begin('pay');
    const id = handle.workflowId;
    await until(handle, 'waiting_decision');
    const shown = await statusOf(id);
    expect(shown.reason).toBe('outcome_unknown');
    const queried = await handle.query<RunStatus>('status');
    expect(shown.pending).toMatchObject([
      { kind: 'outcome_unknown', call: 'call_1_1_0', tool: 'pay', arguments: '{"order":17}' },
    ]);
    expect(shown.pending[0]?.idempotencyKey).toBe(queried.pending[0]?.idempotencyKey);
    const { stdout } = await ask(id);
    expect(stdout).toContain(`idempotency key: ${shown.pending[0]?.idempotencyKey}`);
    expect(stdout).toContain('  order: 17');
    for (const as of ['happened', 'retry', 'abandon']) {
      expect(stdout).toMatch(new RegExp(`resolve ${id} r1 --as ${as} `));
    }
    await handle.cancel();
    await rig.end(handle);
  });
});

describe('the status of an ended run', () => {
  test("is its outcome; the model's text cannot move the cursor", async () => {
    const { handle } = await begin('just');
    const { outcome } = await rig.end(handle);
    const shown = await statusOf(handle.workflowId);
    expect(shown).toMatchObject({ status: 'done', reason: 'answer', doing: null, outcome });
    const { stdout } = await ask(handle.workflowId);
    expect(stdout).toMatch(/^status +completed \(answer\)$/m);
    expect(stdout).toContain('\\u001b[2J');
    expect(stdout).not.toContain('\u001b');
  });

  test('is shown for a run that was refused before it started', async () => {
    const handle = await rig.start({ agent: 'a', message: 7 });
    await rig.end(handle);
    const shown = await statusOf(handle.workflowId);
    expect(shown).toMatchObject({
      agent: 'a',
      status: 'done',
      reason: 'input',
      message: expect.stringContaining('message: expected a string, got 7'),
      outcome: { status: 'failed', reason: 'input', steps: 0 },
      limits: { turn: {}, run: {} },
    });
    expect((await ask(handle.workflowId)).stdout).toMatch(
      /^agent +a \(the run ended before a worker had loaded it\)$/m,
    );
  });

  test('is shown for a canceled run', async () => {
    const { handle, gate } = await begin('hold');
    await gate.reached;
    await handle.cancel();
    const { outcome } = await rig.end(handle);
    expect(await statusOf(handle.workflowId)).toMatchObject({
      status: 'done',
      reason: 'cancelled',
      outcome,
      cancel: { by: expect.stringMatching(/^client \d+@/) as string },
    });
    expect((await ask(handle.workflowId)).stdout).toMatch(/^canceled +\S+ +by client \d+@/m);
  });

  test('is shown for a terminated run', async () => {
    const { handle, gate } = await begin('look');
    await gate.reached;
    await handle.terminate('out of patience');
    gate.release();
    expect(await statusOf(handle.workflowId)).toMatchObject({
      status: 'done',
      reason: 'terminated',
      message: 'the workflow was terminated from outside: out of patience',
      doing: null,
      step: 1,
      outcome: { status: 'failed', reason: 'terminated', steps: 1 },
    });
  });

  test('is shown for a run that timed out', async () => {
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: `${rig.taskQueue}-nobody`,
      workflowId: `late-${randomUUID()}`,
      args: [{ agent: 'a', message: 'x' }],
      workflowExecutionTimeout: 50,
    });
    await handle.result().catch(() => undefined);
    expect(await statusOf(handle.workflowId)).toMatchObject({
      status: 'done',
      reason: 'timed_out',
      agent: 'a',
    });
  });
});

describe('without a worker', () => {
  test('the status is shown, with the command that starts one', async () => {
    const id = `alone-${randomUUID()}`;
    const taskQueue = `${rig.taskQueue}-nobody`;
    await rig.client.workflow.start('agent', {
      taskQueue,
      workflowId: id,
      args: [{ agent: 'files', message: 'x' }],
    });
    const { stdout, stderr } = await ask(id);
    expect(stderr).toContain(`No worker is running on task queue "${taskQueue}": none has polled`);
    expect(stderr).toMatch(new RegExp(`Start one with: .* worker .*--task-queue ${taskQueue}$`));
    expect(stdout).toMatch(new RegExp(`attach ${id} .*--task-queue ${taskQueue} +start a worker`));
    const later = toRunStatus(await readRun(rig.client, id), Date.now() + 60_000);
    expect(later).toMatchObject({
      status: 'working',
      doing: expect.stringMatching(/^waits for a worker \((\d+ s|1 min)\)$/),
    });
    await rig.client.workflow.getHandle(id).terminate();
  });

  test('a worker that was killed on this machine is recognized as dead', async () => {
    const QUEUE = `${rig.taskQueue}-killed`;
    const worker = await workerChild({ ADDRESS: inject('temporalAddress'), QUEUE, LEDGER: '' });
    const seen = vi.waitFor(
      async () => {
        const found = await readWorkerPresence(rig.client, QUEUE);
        expect(found.isUp).toBe(true);
        return found;
      },
      { timeout: 20_000, interval: 50 },
    );
    expect((await seen).text).toContain(`by ${worker.pid}@`);
    await worker.kill();
    const after = await readWorkerPresence(rig.client, QUEUE);
    expect(after).toMatchObject({
      isUp: false,
      text: expect.stringMatching(/@.* has ended; its last poll/),
    });
  });
});

test('a cancel that waits for a worker says who requested it, and leaves nothing to decide', async () => {
  const taskQueue = `${rig.taskQueue}-cancel`;
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [look, pay] });
  const worker = await rig.worker([agent], { taskQueue, models: { m: model } });
  const id = `canceled-${randomUUID()}`;
  const args = [{ agent: 'a', message: `pay ${id}` }];
  const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
  await until(handle, 'waiting_decision');
  expect((await ask(id)).stdout).toContain(` resolve ${id} r1 `);
  await worker.shutdown();
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue };
  await runInProcess(cancel, { id, by: 'unverified:os-user:ann', detach: true }, place);
  const shown = await statusOf(id);
  expect(shown).toMatchObject({ pending: [], cancel: { by: 'unverified:os-user:ann' } });
  const { stdout } = await ask(id);
  expect(stdout).toContain(
    'a cancel is requested by os-user:ann (not verified); the run ends when a worker carries it out',
  );
  expect(stdout.match(/npx perdure \w+/g)).toEqual(['npx perdure attach']);
  const deciding = runInProcess(resolve, { id, call: 'r1', as: 'retry' }, place);
  await expect(deciding).rejects.toThrow('got r1; its cancel is requested');
  await rig.worker([agent], { taskQueue, models: { m: model } });
  await rig.end(handle);
  expect(await statusOf(id)).toMatchObject({
    reason: 'cancelled',
    cancel: { by: 'unverified:os-user:ann' },
  });
  expect((await ask(id)).stdout).toMatch(/^canceled +\S+ +by os-user:ann \(not verified\)$/m);
});

describe('a workflow that is not a run', () => {
  test('is refused: an unknown id, with the command that lists runs', async () => {
    await expect(ask('no-such-run')).rejects.toThrow(/there is no run "no-such-run"; .* list/);
  });

  test('is refused: a workflow of another type', async () => {
    const id = `foreign-${randomUUID()}`;
    const handle = await rig.client.workflow.start('probe', {
      taskQueue: rig.taskQueue,
      workflowId: id,
    });
    await handle.result();
    await expect(ask(id)).rejects.toThrow(
      `"${id}" is a workflow of type "probe", not a run of perdure`,
    );
  });
});

async function until(handle: WorkflowHandle, name: RunStatus['status']): Promise<void> {
  await vi.waitFor(
    async () => expect((await handle.query<RunStatus>('status')).status).toBe(name),
    { timeout: 20_000, interval: 50 },
  );
}
