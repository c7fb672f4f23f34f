import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { answer, approve, edit } from '../../src/cli/commands/approve.js';
import { attach, fork } from '../../src/cli/commands/run.js';
import { send } from '../../src/cli/commands/send.js';
import { cancel, close, pause, resume } from '../../src/cli/commands/pause.js';
import { resolve } from '../../src/cli/commands/limits.js';
import { status as showStatus } from '../../src/cli/commands/status.js';
import type { Command } from '../../src/cli/context.js';
import { errorCode } from '../../src/cli/reports/next-command.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { ModelError, type Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { createGate } from '../../src/testing/play.js';
import { askPerson } from '../../src/tools/built-in/workflow-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
const gate = createGate();
/** Whether the right key is set. */
let mended = false;

/** A tool whose outcome is always unknown. */
const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({}),
  effect: 'once',
  timeout: 200,
  execute: () => new Promise(() => undefined),
});
const refund = defineTool({
  name: 'refund',
  description: 'refunds',
  input: z.object({ euros: z.number() }),
  effect: 'once',
  approval: 'always',
  execute: ({ euros }) => `refunded ${euros}`,
});
const PLAN = JSON.stringify({ actions: [{ id: 'a1', tool: 'refund', arguments: { euros: 5 } }] });
/** Acts on the first message and returns the tool results. */
const model: Model = {
  async call({ messages }, { signal }) {
    const [first] = messages;
    const last = messages.at(-1);
    if (last?.role === 'tool') return replyText(`read: ${last.text}`);
    if (first?.text === 'pay') return replyCall('pay');
    if (first?.text === 'refund') return replyCall('refund', { euros: 60 });
    if (first?.text === 'plan') return replyText(PLAN);
    if (first?.text === 'hold') await gate.wait(signal);
    if (first?.text === 'keyless' && !mended) {
      throw new ModelError('no', { kind: 'credentials', type: 'http_401' });
    }
    return replyText('at last');
  },
};

beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [pay, refund] });
  const planner = planAndExecute({
    name: 'planner',
    instructions: 'x',
    model: 'm',
    tools: [refund],
  });
  await rig.worker([agent, planner], { models: { m: model } });
});
afterAll(async () => {
  gate.barrier.release();
  await rig.close();
});

async function decide<Options extends { readonly id?: string }>(
  command: Command<Options>,
  options: Options,
  how: { readonly json?: boolean } = {},
): Promise<CommandOutput> {
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  return await runInProcess(command, options, { ...place, ...how });
}

async function started(
  message: string,
  status: RunStatus['status'],
  agent = 'a',
): Promise<WorkflowHandle> {
  const handle = await rig.start({ agent, message });
  await vi.waitFor(async () => expect(await handle.query('status')).toMatchObject({ status }), {
    timeout: 20_000,
    interval: 50,
  });
  return handle;
}

/** Starts a run on a queue without a worker. */
async function orphan(
  agent = 'a',
): Promise<{ id: string; taskQueue: string; handle: WorkflowHandle }> {
  const id = `orphan-${randomUUID()}`;
  const taskQueue = `${rig.taskQueue}-nobody`;
  const args = [{ agent, message: 'x' }];
  const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
  return { id, taskQueue, handle };
}

const CALL = 'call_1_1_0';

describe('resolve', () => {
  test('passes the result to the run, names the command to follow it, and is refused the second time', async () => {
    const handle = await started('pay', 'waiting_decision');
    const id = handle.workflowId;
    const given = { id, call: CALL, as: 'happened', result: { receipt: 7 } } as const;
    const { code, stdout, stderr } = await decide(resolve, given, { json: true });
    const line = { id, request: 'r1', call: CALL, as: 'happened', resolved: true };
    expect(JSON.parse(stdout)).toEqual({ ...line, checking: expect.any(Boolean) });
    expect(stderr).toContain(`attach ${id}`);
    expect(code).toBe(0);
    expect((await rig.end(handle)).outcome.answer).toBe('read: {"receipt":7}');
    const again = decide(resolve, { id, call: CALL, as: 'retry' });
    await expect(again).rejects.toThrow(
      new RegExp(
        `r1 of run ${id} was decided by .* \\(happened\\) at .*decided again. See: .*status ${id}`,
      ),
    );
  });

  test('is refused with the message of the run', async () => {
    const handle = await started('pay', 'waiting_decision');
    const id = handle.workflowId;
    const wrong = decide(resolve, { id, call: 'call_9_9_9', as: 'retry' });
    await expect(wrong).rejects.toThrow(
      `request: expected an open request of run ${id}, got call_9_9_9; its open requests are r1`,
    );
    await decide(resolve, { id, call: CALL, as: 'abandon' });
    expect((await rig.end(handle)).outcome.answer).toContain('abandoned');
  });

  test('accepts a result only with --as answer or happened', async () => {
    const given = { id: 'x', call: CALL, as: 'retry', result: 1 } as const;
    await expect(decide(resolve, given)).rejects.toThrow(
      '--result: expected --as answer or happened, got --as retry',
    );
  });

  test('reports even without a worker that the run has no such request', async () => {
    const { id, handle } = await orphan();
    const asked = decide(resolve, { id, call: CALL, as: 'retry' });
    await expect(asked).rejects.toThrow('it has no open request');
    await handle.terminate();
  });
});

test('words that refuse a call are not its result, and the command that denies is named', async () => {
  const handle = await started('refund', 'waiting_decision');
  const id = handle.workflowId;
  const [request] = (await handle.query<RunStatus>('status')).pending;
  const seen = `--digest ${request?.digest.slice(0, 12)}`;
  const given = { id, request: 'r1' };
  const place = '[^;]*';
  for (const [text, note] of [
    ['no, because it is late', " --note 'because it is late'"],
    ['no because it is late', " --note 'because it is late'"],
    ['Reject: too much', " --note 'too much'"],
    ['no way', " --note 'no way'"],
    ['deny.', ''],
  ] as const) {
    await expect(decide(answer, { ...given, text: text.split(' ') })).rejects.toThrow(
      new RegExp(
        `^text: expected no refusal, got "${text}"; refuse the request with: .* deny ${id} r1 ${seen}${note} --${place}; ` +
          `if the result of the call is this text, give it as JSON: .* answer ${id} r1 ${seen} --result '"${text}"' --${place}$`,
      ),
    );
  }
  await expect(decide(send, { id, message: ['no,', 'too', 'late'], wait: true })).rejects.toThrow(
    new RegExp(
      `got "no, too late"; deny the request with: .* deny ${id} r1 ${seen} --note 'too late'`,
    ),
  );
  const { stderr } = await decide(answer, { ...given, text: [], result: 'no way' });
  expect(stderr).toContain(': answer; ');
  expect((await rig.end(handle)).outcome.answer).toContain('no way');
});

test('without a digest, the named command decides the same', async () => {
  const handle = await started('refund', 'waiting_decision');
  const id = handle.workflowId;
  const [request] = (await handle.query<RunStatus>('status')).pending;
  const seen = `--digest ${request?.digest.slice(0, 12)}`;
  const given = { id, request: 'r1' };
  const named = async (decided: Promise<CommandOutput>): Promise<string> =>
    await decided.then(
      () => 'decided',
      (error: unknown) => / run: (?:npx )?perdure (.*?) --address/.exec(String(error))?.[1] ?? '',
    );
  const where = { op: 'under', path: 'euros', value: 50 };
  expect(await named(decide(approve, { ...given, grant: 'same_call', by: 'kim' }))).toBe(
    `approve ${id} r1 ${seen} --grant same_call --by kim`,
  );
  expect(await named(decide(approve, { ...given, grant: 'tool', where }))).toBe(
    `approve ${id} r1 ${seen} --grant tool --where '${JSON.stringify(where)}'`,
  );
  expect(await named(decide(edit, { ...given, arguments: { euros: 20 } }))).toBe(
    `edit ${id} r1 ${seen} --arguments '{"euros":20}'`,
  );
  const some = { id, call: 'r1', as: 'some', actions: 'a1,a3', note: 'not the rest' } as const;
  // A call is no plan, so a digest would not help.
  const refusal = '(not_offered): as: expected one of approve, deny, edit';
  await expect(decide(resolve, some)).rejects.toThrow(refusal);
  await expect(decide(approve, { ...given, some: true })).rejects.toThrow(refusal);
  await handle.cancel();
  await rig.end(handle);
});

test('what no digest would help is refused before one is asked for', async () => {
  const paying = await started('refund', 'waiting_decision');
  const grant = { id: paying.workflowId, request: 'r1', grant: 'tool' } as const;
  const where = { op: 'under', path: 'eurs', value: 50 };
  await expect(decide(approve, { ...grant, where })).rejects.toThrow(/^--where.path: .*eurs/);
  const planned = await started('plan', 'waiting_decision', 'planner');
  const id = planned.workflowId;
  await expect(decide(approve, { id, request: 'r1', some: 'a9' })).rejects.toThrow(
    '(malformed): actions: expected ids of r1 with all dependencies (it has a1), got "a9"',
  );
  await expect(decide(approve, { id, request: 'r1', some: 'a1' })).rejects.toThrow('--some a1');
  for (const handle of [paying, planned]) {
    await handle.cancel();
    await rig.end(handle);
  }
});

test('a paused run with an approved call is left with how to resume it', async () => {
  const handle = await started('refund', 'waiting_decision');
  const id = handle.workflowId;
  const [request] = (await handle.query<RunStatus>('status')).pending;
  await decide(pause, { id });
  expect((await decide(showStatus, { id })).stdout).toMatch(
    /^waits +until it is resumed, since it is paused$/m,
  );
  expect(await handle.query('status')).toMatchObject({ status: 'waiting_decision', paused: true });
  await decide(approve, { id, request: 'r1', digest: request?.digest ?? '' });
  for (const wait of [false, true]) {
    const { code, stderr } = await decide(attach, { id, wait });
    expect(stderr).toMatch(/^paused: nothing new starts$/m);
    expect(stderr).toMatch(/It is paused\. Resume it with: .* resume run-/);
    expect(code).toBe(3);
  }
  await decide(resume, { id });
  expect((await rig.end(handle)).outcome.answer).toContain('refunded 60');
});

test('an edit waits for its check, and fails if that refuses it', async () => {
  const handle = await started('refund', 'waiting_decision');
  const id = handle.workflowId;
  const [request] = (await handle.query<RunStatus>('status')).pending;
  const given = { id, request: 'r1', digest: request?.digest ?? '' };
  await expect(decide(edit, { ...given, arguments: { euro: 70 } })).rejects.toThrow(
    new RegExp(
      `the decision about request r1 is refused, and it is still open: .*euros.* See: .*inbox ${id} r1`,
      's',
    ),
  );
  const refused = decide(edit, { ...given, arguments: { ['x'.repeat(99)]: 1 } });
  await expect(refused).rejects.toThrow(/x…; expected one of euros\. See: /);
  expect(await refused.catch(errorCode)).toBe('refused');
  const { code, stdout } = await decide(
    edit,
    { ...given, arguments: { euros: 70 } },
    { json: true },
  );
  expect(JSON.parse(stdout)).toMatchObject({ as: 'edit', resolved: true, checking: false });
  expect(code).toBe(0);
  expect((await rig.end(handle)).outcome.answer).toContain('refunded 70');
});

test('a decision that no worker checks blocks the next one, which names the command for a worker', async () => {
  const taskQueue = `${rig.taskQueue}-left`;
  const asks: Model = { call: async () => replyCall('ask_person', { question: 'Why?' }) };
  const tools = [askPerson()];
  const asker = defineAgent({ name: 'asker', instructions: 'x', model: 'asks', tools });
  const worker = await rig.worker([asker], { taskQueue, models: { asks } });
  const id = `left-${randomUUID()}`;
  const args = [{ agent: 'asker', message: 'x' }];
  const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
  await vi.waitFor(
    async () => expect(await handle.query('status')).toMatchObject({ status: 'waiting_decision' }),
    { timeout: 20_000, interval: 50 },
  );
  await worker.shutdown();
  const given = { id, request: 'r1', text: ['so'] };
  expect((await decide(answer, given)).stderr).toContain('a worker checks the decision');
  await expect(decide(answer, given)).rejects.toThrow(
    /\(checking\): another decision about r1 \(answer\) waits for a worker to check it; .*; no worker is running\. This configuration does not have agent .*: start the program that has it\. See: /,
  );
  await handle.terminate();
});

test.each([pause, resume])(
  'an agent that does not exist is named with the nearest one',
  async (what) => {
    await expect(decide(what, { all: true, agent: 'fils' })).rejects.toThrow(
      '--agent: neither the configuration nor a run has agent "fils" (nearest: files); correct the name',
    );
  },
);

test('a fork without a worker does not offer to follow the run that it copies', async () => {
  const { id, taskQueue, handle } = await orphan('files');
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue };
  const options = { run: id, message: ['x'], detach: true, wait: true };
  const forked = runInProcess(fork, options, place);
  await expect(forked).rejects.toThrow(/^fork --detach needs a worker, (?!.* attach ).* worker /);
  await handle.terminate();
});

test('close says that a task run ends with its turn, and how to follow it', async () => {
  const { id, handle } = await orphan();
  await expect(decide(close, { id })).rejects.toThrow(
    new RegExp(
      `^id: expected an open run, got ${id}, a task run, which ends with its turn; follow it with: .* attach ${id} .*; or cancel it with: .* cancel ${id} `,
    ),
  );
  await handle.terminate();
});

describe('resume', () => {
  test('retries a blocked run at once', async () => {
    const handle = await started('keyless', 'blocked');
    const id = handle.workflowId;
    mended = true;
    const { code, stdout, stderr } = await decide(resume, { id }, { json: true });
    expect(JSON.parse(stdout)).toEqual({ id, resumed: true, wasBlocked: true, wasPaused: false });
    expect(stderr).toContain(`Run ${id} retries`);
    expect(code).toBe(0);
    // The first probe of the run would be after 30 s.
    expect((await rig.end(handle)).outcome.answer).toBe('at last');
  });

  test('does not make a decision for a person', async () => {
    const handle = await started('pay', 'waiting_decision');
    const id = handle.workflowId;
    await expect(decide(resume, { id })).rejects.toThrow('request r1 (outcome_unknown) waits');
    await handle.cancel();
    await rig.end(handle);
  });

  test('does not change a run that is not blocked', async () => {
    const handle = await started('hold', 'working');
    const id = handle.workflowId;
    const { code, stdout, stderr } = await decide(resume, { id }, { json: true });
    expect(JSON.parse(stdout)).toMatchObject({ id, resumed: false });
    expect(stderr).toContain('is neither paused nor blocked, so nothing changes');
    expect(code).toBe(0);
    await handle.cancel();
    await rig.end(handle);
  });
});

describe('cancel', () => {
  test('ends the run and prints its outcome', async () => {
    const handle = await started('hold', 'working');
    const id = handle.workflowId;
    const { code, stdout, stderr } = await decide(cancel, { id }, { json: true });
    expect(JSON.parse(stdout)).toMatchObject({ id, status: 'cancelled', reason: 'cancelled' });
    expect(stderr).toMatch(/^cancelled · 0 steps/m);
    expect(code).toBe(0);
    expect((await handle.describe()).status.name).toBe('CANCELLED');
    await expect(decide(cancel, { id })).rejects.toThrow('has ended: cancelled');
  });

  test('waits for a later worker if none is running', async () => {
    const { id, taskQueue, handle } = await orphan();
    const { code, stdout, stderr } = await decide(cancel, { id }, { json: true });
    expect(JSON.parse(stdout)).toMatchObject({ id, status: 'working', reason: 'cancel_requested' });
    expect(stderr).toContain(`none answers on task queue "${taskQueue}"`);
    expect(code).toBe(0);
    await rig.worker([defineAgent({ name: 'a', instructions: 'x', model: 'm' })], {
      taskQueue,
      models: { m: model },
    });
    expect((await rig.end(handle)).outcome.status).toBe('cancelled');
  });

  test('with --detach requests the cancellation and returns', async () => {
    const handle = await started('hold', 'working');
    const { stdout, stderr } = await decide(cancel, { id: handle.workflowId, detach: true });
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: 'Cancellation requested.' });
    expect((await rig.end(handle)).outcome.status).toBe('cancelled');
  });

  test('reports an unknown id', async () => {
    await expect(decide(cancel, { id: 'nobody' })).rejects.toThrow('no run "nobody"');
  });
});
