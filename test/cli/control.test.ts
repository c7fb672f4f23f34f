import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { attach } from '../../src/cli/commands/run.js';
import { errorCode } from '../../src/cli/reports/next-command.js';
import { cancel, close, pause, resume } from '../../src/cli/commands/pause.js';
import { limits, type LimitsOptions } from '../../src/cli/commands/limits.js';
import { send } from '../../src/cli/commands/send.js';
import { status } from '../../src/cli/commands/status.js';
import { transcript } from '../../src/cli/commands/transcript.js';
import type { Command } from '../../src/cli/context.js';
import { askRun } from '../../src/updates/ask.js';
import type { RunStatus } from '../../src/core/state/status.js';
import type { Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { createGate, type Gate } from '../../src/testing/play.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { wait } from '../../src/tools/built-in/workflow-tools.js';
import { commandLine } from '../support/command.js';
import { untilStatus } from '../support/conversation.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const command = await commandLine();
let rig: Rig;
const gates = new Map<string, Gate>();

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
});

/** Acts on the newest message; a message that begins with `hold` waits for its gate. */
const model: Model = {
  async call({ messages }, { signal }) {
    const place = messages.findLastIndex(({ role }) => role === 'user');
    const text = messages[place]?.text ?? '';
    await gates.get(text)?.wait(signal);
    if (text.startsWith('wait') && place === messages.length - 1) {
      return replyCall('wait', { seconds: 3_600 });
    }
    return replyText(`re: ${text}`);
  },
};

beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({
    name: 'a',
    instructions: 'x',
    model: 'm',
    tools: [look, wait()],
  });
  await rig.worker([agent], { models: { m: model } });
});
afterAll(async () => await rig.close());

async function does<Options>(
  what: Command<Options>,
  options: Options,
  how: { readonly json?: boolean } = {},
): Promise<CommandOutput> {
  return await runInProcess(what, options, {
    address,
    taskQueue: rig.taskQueue,
    home: rig.home,
    ...how,
  });
}

async function open(message = 'hello'): Promise<{ handle: WorkflowHandle; id: string }> {
  const handle = await rig.start({ agent: 'a', open: true, message });
  return { handle, id: handle.workflowId };
}

async function idle(): Promise<{ handle: WorkflowHandle; id: string }> {
  const run = await open();
  await untilStatus(run.handle, 'waiting_message');
  return run;
}

async function held(): Promise<{ handle: WorkflowHandle; id: string; gate: Gate }> {
  const text = `hold ${randomUUID()}`;
  const gate = createGate();
  gates.set(text, gate);
  const run = await open(text);
  await gate.barrier.reached;
  return { ...run, gate };
}

async function statusOf(id: string): Promise<RunStatus> {
  return JSON.parse((await does(status, { id }, { json: true })).stdout) as RunStatus;
}

/** Starts a run on a queue without a worker. */
async function orphan(): Promise<string> {
  const id = `orphan-${randomUUID()}`;
  const taskQueue = `nobody-${randomUUID()}`;
  const args = [{ agent: 'files', open: true, message: 'x' }];
  await rig.client.workflow.start('agent', { workflowId: id, taskQueue, args });
  return id;
}

describe('pause and resume', () => {
  test('of an idle run name what it needs next, until it is terminated', async () => {
    const { id } = await idle();
    await does(pause, { id });
    const paused = await does(attach, { id, wait: true }, { json: true });
    expect(JSON.parse(paused.stdout)).toMatchObject({ id, status: 'paused' });
    expect(paused.stderr).toMatch(
      /is paused and waits for a message.*\nIt is paused\. Resume it with: .* resume /,
    );
    const resumed = await does(resume, { id }, { json: true });
    expect(JSON.parse(resumed.stdout)).toMatchObject({ resumed: true, wasPaused: true });
    expect(resumed.stderr).toMatch(
      /resumes\. It waits for a message\.\nSend it the next message with: /,
    );
    expect(resumed.stderr).not.toContain(' attach ');
    const again = await does(resume, { id }, { json: true });
    expect(JSON.parse(again.stdout)).toMatchObject({ resumed: false, wasPaused: false });
    await rig.client.workflow.getHandle(id).terminate('enough');
    const ended = await does(attach, { id, wait: true }, { json: true });
    expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'failed', reason: 'terminated' });
    expect(ended.stderr).toMatch(
      /^failed \(terminated\): the workflow was terminated from outside/m,
    );
  });

  test('let calls in flight end, and defer messages until the run resumes', async () => {
    const { id, gate } = await held();
    const paused = await does(pause, { id }, { json: true });
    expect(JSON.parse(paused.stdout)).toEqual({ id, paused: true, wasPaused: false });
    expect(paused.stderr).toMatch(/is pausing: calls in flight finish.* resume run-/);
    expect(await statusOf(id)).toMatchObject({ status: 'paused', turn: 1 });
    gate.barrier.release();
    const later = `hold ${randomUUID()}`;
    gates.set(later, createGate());
    await askRun(rig.client, id, { message: later });
    const following = await does(attach, { id, wait: true }, { json: true });
    expect(JSON.parse(following.stdout)).toMatchObject({ id, status: 'paused', reason: null });
    expect(following.code).toBe(3);
    expect(following.stderr).toMatch(/^paused: /m);
    expect(following.stderr).toMatch(/waiting\. It is paused\. Resume it with: .* resume /);
    expect((await does(pause, { id })).stderr).toContain('was already paused');
    expect((await does(status, { id })).stdout).toMatch(/resume run-.* resume it/);

    const resumed = await does(resume, { id }, { json: true });
    expect(JSON.parse(resumed.stdout)).toEqual({
      id,
      resumed: true,
      wasBlocked: false,
      wasPaused: true,
    });
    expect(resumed.stderr).toContain(`Run ${id} resumes.`);
    const place = ['--address', address, '--task-queue', rig.taskQueue];
    const follower = command.here(['attach', id, ...place]);
    await follower.prints(`run ${id}`);
    gates.get(later)?.barrier.release();
    const end = await follower.ended;
    expect({ code: end.code, stdout: end.stdout }).toEqual({ code: 0, stdout: `re: ${later}\n` });
  });
});

describe('cancel --turn', () => {
  test('ends the turn; the run then waits for its next message', async () => {
    const { handle, id } = await held();
    const end = await does(cancel, { id, turn: true }, { json: true });
    expect(JSON.parse(end.stdout)).toMatchObject({ id, turn: 1, status: 'cancelled' });
    expect(end.stderr).toMatch(/Send it the next message with: .* send run-/);
    expect(end.code).toBe(0);
    expect((await untilStatus(handle, 'waiting_message')).turn).toBe(1);
    const none = does(cancel, { id, turn: true });
    await expect(none).rejects.toThrow(
      `no turn is under way in run ${id}: turn 1 is canceled already, and the run waits for a message`,
    );
    await expect(none).rejects.toThrow(
      /Send it the next message with: .* send run-.*\n.*close run-/,
    );
    await expect(none).rejects.toThrow(/Cancel it as a whole with: .* cancel run-/);
  });

  test('with --detach requests the cancellation and returns', async () => {
    const { handle, id } = await held();
    const end = await does(cancel, { id, turn: true, detach: true }, { json: true });
    expect(JSON.parse(end.stdout)).toMatchObject({ turn: 1, reason: 'cancel_requested' });
    expect(end.code).toBe(0);
    await untilStatus(handle, 'waiting_message');
  });
});

describe('close', () => {
  test('ends a waiting run at once, and a busy run after its current turn', async () => {
    const waiting = await idle();
    const ended = await does(close, { id: waiting.id }, { json: true });
    expect(JSON.parse(ended.stdout)).toMatchObject({ id: waiting.id, closing: true, ended: true });
    expect(ended.code).toBe(0);
    expect(await waiting.handle.result()).toMatchObject({ reason: 'closed' });
    await expect(does(close, { id: waiting.id })).rejects.toThrow('has ended: completed (closed)');

    const { handle, id, gate } = await held();
    const closing = await does(close, { id }, { json: true });
    const first = { id, closing: true, ended: false, wasClosing: false };
    expect(JSON.parse(closing.stdout)).toEqual(first);
    const again = await does(close, { id }, { json: true });
    expect(JSON.parse(again.stdout)).toEqual({ ...first, wasClosing: true });
    expect(again.stderr).toMatch(/ is already closed: it accepts no more messages/);
    const sent = does(send, { id, message: ['late'], wait: true });
    const refused: unknown = await sent.catch((error: unknown) => error);
    expect(String(refused)).toContain('accepts no more messages: it is closed');
    expect(errorCode(refused)).toBe('run_ended');
    gate.barrier.release();
    expect(await handle.result()).toMatchObject({ reason: 'closed', answer: /^re: hold/ });
  });
});

test.each(['before it joins', 'meanwhile'])(
  'attach follows a run that is closed %s through its waiting messages to its end',
  async (when) => {
    const { id, gate } = await held();
    await askRun(rig.client, id, { message: 'the last' });
    if (when !== 'meanwhile') await does(close, { id });
    const place = ['--address', address, '--task-queue', rig.taskQueue];
    const follower = command.here(['attach', id, ...place]);
    await follower.prints(`run ${id}`);
    if (when === 'meanwhile') await does(close, { id });
    gate.barrier.release();
    const end = await follower.ended;
    expect({ code: end.code, stdout: end.stdout }).toEqual({ code: 0, stdout: 're: the last\n' });
    expect(end.stderr).not.toContain('Follow it with');
    expect(await statusOf(id)).toMatchObject({ status: 'done', turn: 2 });
  },
);

test('the status of a run that has ended counts no message as queued', async () => {
  const { handle, id } = await held();
  await askRun(rig.client, id, { message: 'left' });
  expect((await statusOf(id)).queued).toBe(1);
  await handle.terminate('enough');
  expect((await statusOf(id)).queued).toBe(0);
});

test('a run that ended before its first message offers no transcript, which says that it is empty', async () => {
  const handle = await rig.start({ agent: 'a', open: true });
  const id = handle.workflowId;
  await untilStatus(handle, 'waiting_message');
  expect((await does(close, { id })).stderr).toBe(`Run ${id} is closed.`);
  expect((await does(status, { id })).stdout).not.toContain('transcript');
  expect((await does(transcript, { id })).stderr).toBe('The run has no messages.');
  const turns = await does(transcript, { id, turns: true });
  expect(turns.stderr).toBe('No turn of the run has ended.');
});

describe('limits', () => {
  const of = async (options: LimitsOptions, json = true): Promise<CommandOutput> =>
    await does(limits, options, { json });

  test('are shown, and can be replaced one by one, per turn or for the whole run', async () => {
    const { id } = await idle();
    const shown = await of({ id }, false);
    expect(shown.stdout.split('\n')).toEqual([
      expect.stringMatching(/^LIMIT +EACH TURN +WHOLE RUN$/),
      expect.stringMatching(/^steps +50 +none$/),
      expect.stringMatching(/^tool-calls +200 +none$/),
      expect.stringMatching(/^tokens +none +none$/),
      expect.stringMatching(/^cost-usd +none +none$/),
      expect.stringMatching(/^wall +none +none$/),
      expect.stringMatching(/^depth /),
    ]);
    const turn = await of({ id, limit: { steps: 5, wallMs: 60_000 } });
    expect(JSON.parse(turn.stdout)).toMatchObject({
      id,
      limits: { turn: { steps: 5, toolCalls: 200, wallMs: 60_000 }, run: {} },
    });
    const run = await of({ id, limit: { run: { steps: 500 } } });
    expect(JSON.parse(run.stdout)).toMatchObject({
      limits: { turn: { steps: 5 }, run: { steps: 500 } },
    });
    const none = await of({ id, limit: { steps: null } });
    expect(JSON.parse(none.stdout)).toMatchObject({ limits: { turn: { steps: null } } });
    expect((await statusOf(id)).limits.run).toEqual({ steps: 500 });
    await expect(of({ id, limit: { costUsd: 1 } })).rejects.toThrow(
      '--limit cost-usd: the price of model "m" is unknown; use --limit tokens',
    );
  });

  test.each([
    [['--limit', 'steps=0'], 'Expected a positive whole number, or none for no limit, got 0.'],
    [['--add', 'steps=0'], 'Expected a positive whole number, got 0.'],
    [['--limit', 'steps=99999999999999999999'], 'Expected at most 9007199254740991, or none'],
    [['--add', 'run.steps=1e20'], 'Expected at most 9007199254740991, got 1e20'],
    [
      ['--limit', 'wall=9999999h'],
      'Expected at most 36500 days, or none for no limit, got 9999999h.',
    ],
    [['--limit', 'run.tokens=1.5'], 'Expected a positive whole number, or none for no limit, got '],
    [['--limit', 'cost-usd=-1'], 'Expected a positive number, or none for no limit, got -1.'],
    [['--limit', 'steps=many'], 'Expected a positive whole number, or none for no limit, got '],
    [['--limit', 'wall=NaN'], 'Expected a duration such as 10m, or none for no limit, got NaN.'],
    [['--limit', 'steps'], 'Expected NAME=VALUE, such as steps=20'],
    [['--limits', 'steps=3'], 'Did you mean --limit'],
  ])('%j is refused as usage', async (args, why) => {
    const end = await command.here(['limits', 'x', ...args]).ended;
    expect(end.stderr).toContain(why);
    expect(end.code).toBe(2);
  });
});

describe('the reason why a run waits', () => {
  test('is shown: a message, or a time', async () => {
    const { id } = await idle();
    const shown = (await does(status, { id })).stdout;
    expect(shown).toMatch(/^status +waiting_message$/m);
    expect(shown).toMatch(/^step +1 of 50 in turn 1 · 0 calls · completed \(answer\)$/m);
    expect(shown).toMatch(/^waits +for a message$/m);
    expect(shown).toMatch(/send run-\S+ MESSAGE .* send it a message$/m);

    const { handle, id: sleeper } = await open(`wait ${randomUUID()}`);
    await untilStatus(handle, 'waiting_time');
    await askRun(rig.client, id, { message: 'x' });
    const asleep = await does(status, { id: sleeper });
    expect(asleep.stdout).toMatch(/^status +waiting_time/m);
    expect(asleep.stdout).toMatch(
      /^waits +until \d{4}-\d\d-\d\d \S+, in (1 hour|60 min|59 min), or until a message/m,
    );
    const woken = await does(send, { id: sleeper, message: ['hurry'], steer: true, wait: true });
    expect(woken.stdout).toBe('re: hurry');
    expect(woken.stderr).toMatch(/^joins turn 1 · hurry$/m);
    expect(woken.code).toBe(0);
  });
});

describe('without a worker', () => {
  test('refuses a decision at once, with the commands that start a worker', async () => {
    const id = await orphan();
    const wanted = [
      () => does(pause, { id }),
      () => does(limits, { id, limit: { steps: 3 } }),
      () => does(cancel, { id, turn: true }),
    ];
    for (const ask of wanted) {
      await expect(ask()).rejects.toThrow(/needs a worker, and none answers.* worker .*attach/);
    }
    await rig.client.workflow.getHandle(id).terminate();
  });

  test('records a message for a later worker, and names the command that starts one', async () => {
    const id = `recorded-${randomUUID()}`;
    const taskQueue = `nobody-${randomUUID()}`;
    const args = [{ agent: 'files', open: true }];
    await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
    const given = { id, message: ['x'], messageId: 'm', wait: true, detach: true };
    const sent = await does(send, given, { json: true });
    expect(sent.code).toBe(0);
    expect(JSON.parse(sent.stdout)).toMatchObject({ id, delivered: false, messageId: 'm' });
    expect(sent.stderr).toMatch(
      /recorded, but not delivered yet: no worker is running on task queue "nobody-.*Start one with: .*worker/,
    );
    expect(sent.stderr.match(/ attach /g) ?? []).toHaveLength(1);
    const recorded = rig.client.workflow.getHandle(id);
    const { events } = await recorded.fetchHistory();
    const signals = events?.filter((event) => event.workflowExecutionSignaledEventAttributes);
    expect(signals).toHaveLength(1);
    await recorded.terminate();
  });
});

test.each([
  [['pause'], 'expected the id of a run, or --all --agent NAME'],
  [['close', 'x', 'y'], 'unexpected argument "y"'],
  [['resolve', 'x'], '(usage: perdure resolve [options] <id> <call>; --help explains it)'],
  [['cancel', 'x', '--turns'], 'Did you mean --turn'],
])('%j is refused as usage', async (args, why) => {
  const end = await command.here(args).ended;
  expect(end.stderr).toContain(why);
  expect(end.code).toBe(2);
});

test.each([[[]], [['schedule']]])('a missing command is named in JSON: %j', async (words) => {
  const end = await command.here([...words, '--json']).ended;
  expect(JSON.parse(end.stdout)).toEqual({
    code: 'usage',
    error: 'command: expected one, got none; --help lists the commands',
  });
});

test('an unknown id exits with code 1, and cannot move the cursor', async () => {
  const place = ['--address', address, '--task-queue', rig.taskQueue];
  for (const words of [['pause'], ['close'], ['limits'], ['cancel', '--turn']]) {
    const [name = '', ...flags] = words;
    const end = await command.here([name, 'no\u001b[2Jbody', ...flags, ...place]).ended;
    expect(end.stderr).toContain('there is no run "no\\u001b[2Jbody"');
    expect(end.code).toBe(1);
  }
});
