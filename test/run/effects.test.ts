import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { BlobError, type BlobStore } from '../../src/storage/blob-store.js';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import type { RunStatus, TranscriptPage } from '../../src/core/state/status.js';
import { type ModelReply, type ModelRequest, ModelError } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { ToolOptions } from '../../src/tools/tool-options.js';
import type { Tool } from '../../src/tools/tool.js';
import { asking, decide, statusOf } from '../support/conversation.js';
import { historyText } from '../support/history-text.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';

type Script = (
  step: number,
  request: ModelRequest,
  signal: AbortSignal,
) => ModelReply | Promise<ModelReply>;
const never = new Promise<never>(() => undefined);
const scripts = new Map<string, Script>();
const model = {
  async call(request: ModelRequest, { signal }: { signal: AbortSignal }) {
    const step = request.messages.filter(({ role }) => role === 'assistant').length;
    return (
      (await scripts.get(request.messages[0]?.text ?? '')?.(step, request, signal)) ??
      replyText('done')
    );
  },
};

let executed = 0;
/** What the only tool of the next run does. */
let execute: (call: { attempt: number; signal: AbortSignal; beat: (x: never) => void }) => unknown;
let verify: (() => unknown) | undefined;
let failingPuts = 0;
let failingGets = 0;
let blobs: BlobStore;

const disk = (): BlobError => new BlobError('disk is full', { kind: 'unwritable' });
const shaky: BlobStore = {
  async put(text) {
    if (failingPuts > 0) {
      failingPuts -= 1;
      throw disk();
    }
    return await blobs.put(text);
  },
  async get(ref) {
    if (failingGets > 0) {
      failingGets -= 1;
      throw disk();
    }
    return await blobs.get(ref);
  },
};

const tool = (effect: Effect, rest: Partial<ToolOptions<z.ZodObject, z.ZodType>> = {}): Tool =>
  defineTool({
    name: 'act',
    description: 'acts',
    input: z.object({}),
    effect,
    timeout: 2_000,
    async execute(_input, context) {
      executed += 1;
      const { call, signal } = context;
      return await execute({ attempt: call.attempt, signal, beat: (x) => context.heartbeat(x) });
    },
    ...rest,
  });

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
  blobs = fileBlobStore(`${rig.home}/blobs`);
  const once = tool('once');
  const verified = tool('once', {
    timeout: 300,
    verify: async () => (await verify?.()) as undefined,
  });
  const agents = [
    defineAgent({ name: 'once', instructions: 'x', model: 'm', tools: [once] }),
    defineAgent({ name: 'verified', instructions: 'x', model: 'm', tools: [verified] }),
    defineAgent({ name: 'read', instructions: 'x', model: 'm', tools: [tool('read')] }),
  ];
  await rig.worker(agents, { models: { m: model }, blobs: shaky });
});
afterAll(async () => await rig.close());

const actOnce: Script = (step) => (step === 0 ? replyCall('act') : replyText('done'));

async function run(
  agent: string,
  script: Script = actOnce,
  rest = {},
): Promise<Ended & { read: string }> {
  const message = randomUUID();
  scripts.set(message, script);
  executed = 0;
  const ended = await rig.run({ agent, message, ...rest });
  const messages = ended.projection.state?.transcript.messages ?? [];
  return { ...ended, read: messages.find(({ role }) => role === 'tool')?.text ?? '' };
}

async function startBlocked(agent: string) {
  const message = randomUUID();
  scripts.set(message, actOnce);
  executed = 0;
  const handle = await rig.start({ agent, message });
  expect((await asking(handle)).reason).toBe('outcome_unknown');
  return handle;
}

describe('a once tool that has taken effect', () => {
  test('is neither reported as failed nor executed again if its result cannot be stored', async () => {
    execute = () => 'x'.repeat(100_000);
    failingPuts = 4;
    const { read } = await run('once', (step) => (step < 2 ? replyCall('act') : replyText('done')));
    expect(executed).toBe(1);
    expect(read).toMatch(
      /^x+\n\[… \d+ of 100000 bytes omitted; they could not be stored: disk is full …\]/,
    );
  });

  test('survives odd heartbeat details', async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    execute = ({ beat }) => {
      beat(cyclic as never);
      return 'paid';
    };
    expect((await run('once')).read).toBe('paid');
  });

  test('is not taken for undone when verify answers without `happened`', async () => {
    execute = () => never;
    verify = () => ({});
    const handle = await startBlocked('verified');
    expect(executed).toBe(1);
    await decide(handle, { as: 'abandon' });
    await rig.end(handle);
  });

  test('is not executed again if its activity is paused and unpaused by hand', async () => {
    execute = ({ attempt }) => (attempt === 1 ? never : 'again');
    const message = randomUUID();
    scripts.set(message, actOnce);
    executed = 0;
    const handle = await rig.start({ agent: 'once', message });
    await vi.waitFor(() => expect(executed).toBe(1), { timeout: 20_000, interval: 20 });
    const { workflowId } = handle;
    const activity = { namespace: 'default', execution: { workflowId }, type: 'runTool' };
    await rig.client.workflowService.pauseActivity(activity);
    await rig.client.workflowService.unpauseActivity(activity);
    await asking(handle);
    expect(executed).toBe(1);
    await decide(handle, { as: 'abandon' });
    await rig.end(handle);
  });
});

describe('a once tool that has not started', () => {
  test('is scheduled again if its input is unreadable at first', async () => {
    execute = () => 'paid';
    failingGets = 1;
    const { read, outcome } = await run('once', actOnce, { context: { notes: 'n'.repeat(5_000) } });
    expect(read).toBe('paid');
    expect(executed).toBe(1);
    expect(outcome).toMatchObject({ toolCalls: 1 });
  });
});

describe('resolve', () => {
  test('refuses a result that is too large, and accepts a smaller one', async () => {
    execute = () => never;
    verify = () => undefined;
    const handle = await startBlocked('verified');
    const [{ id, digest } = { id: '', digest: '' }] = (await statusOf(handle)).pending;
    const resolve = async (result: unknown): Promise<unknown> =>
      await handle.executeUpdate('resolve', {
        args: [{ request: id, digest, as: 'happened', result }],
      });
    await expect(resolve('x'.repeat(40_000))).rejects.toMatchObject({
      cause: expect.objectContaining({
        message: expect.stringContaining('of JSON, got 40002'),
      }),
    });
    await resolve('small');
    expect((await rig.end(handle)).outcome.status).toBe('completed');
  });
});

describe('cancelling', () => {
  test('does not wait for a verify that hangs', async () => {
    execute = () => never;
    verify = () => never;
    const message = randomUUID();
    scripts.set(message, actOnce);
    const handle = await rig.start({ agent: 'verified', message });
    await vi.waitFor(
      async () => {
        const { raw } = await handle.describe();
        expect(raw.pendingActivities?.[0]?.activityType?.name).toBe('runFunction');
      },
      { timeout: 20_000, interval: 50 },
    );
    await handle.cancel();
    expect((await rig.end(handle)).outcome.status).toBe('cancelled');
  });

  test('does not wait for a model that ignores it, and ends the block', async () => {
    const message = randomUUID();
    const begun = new Promise<void>((resolve) => {
      scripts.set(message, () => {
        resolve();
        return never;
      });
    });
    const handle = await rig.start({ agent: 'read', message });
    await begun;
    await handle.cancel();
    expect((await rig.end(handle)).outcome.status).toBe('cancelled');
    expect(await handle.query<RunStatus>('status')).toMatchObject({
      status: 'done',
      message: null,
    });
  });
});

describe('a deadline', () => {
  test.each([
    ['while a tool runs that then returns a result', 'read', actOnce],
    [
      'while the run is blocked',
      'read',
      ((_step: number, request: ModelRequest) => {
        if (request.toolChoice === 'none') return replyText('in short');
        throw new ModelError('no money', { kind: 'quota', type: 'quota' });
      }) satisfies Script,
    ],
  ])('%s is projected exactly as it happened', async (_what, agent, script) => {
    execute = ({ signal }) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve('what I have')));
    const { outcome, handle, projection } = await run(agent, script, { limits: { wallMs: 600 } });
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'wallMs' });
    const { messages } = await handle.query<TranscriptPage>('transcript');
    const retold = projection.state?.transcript.messages ?? [];
    expect(retold.map(({ text }) => text)).toEqual(messages.map(({ text }) => text));
  });
});

describe('the worker', () => {
  test('survives half surrogate pairs in errors of models and verifiers, and leaks no secret', async () => {
    process.env['BANK_TOKEN'] = 'canary-5d1f20aa91';
    execute = () => never;
    verify = () => {
      throw new Error(`\ud83d ${process.env['BANK_TOKEN']} ${'x'.repeat(300_000)}`);
    };
    const handle = await startBlocked('verified');
    await decide(handle, { as: 'abandon' });
    const { history } = await rig.end(handle);
    expect(historyText(history)).not.toContain('canary-5d1f20aa91');
    expect(historyText(history).length).toBeLessThan(60_000);
    const { outcome } = await run('read', () => {
      throw new ModelError('\ud83d', { kind: 'request', type: 'odd' });
    });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    delete process.env['BANK_TOKEN'];
  });

  test('waits with a reply that it cannot store, and neither loses it nor pays for it again', async () => {
    let calls = 0;
    failingPuts = 4;
    const { outcome } = await run('read', () => {
      calls += 1;
      return replyText('y'.repeat(70_000));
    });
    expect(calls).toBe(1);
    expect(outcome.answer).toContain('of 70000 bytes omitted; read on with read_result');
  });

  test('fits a reply with many unexecutable calls into the limits of a history', async () => {
    const names = Array.from({ length: 140 }, (_, n) => `no such tool ${n}.${'z'.repeat(80)}`);
    const { history } = await run('read', (step) =>
      step === 0
        ? { ...replyCall('x'), calls: names.map((name) => ({ name, arguments: '{}' })) }
        : replyText('done'),
    );
    for (const event of history.events ?? []) {
      expect(historyText({ events: [event] }).length).toBeLessThan(256 * 1024);
    }
  });

  test('refuses agents that it cannot run as defined', async () => {
    const large = defineAgent({ name: 'large', instructions: 'x'.repeat(300_000), model: 'm' });
    await expect(rig.worker([large])).rejects.toThrow('agent "large": its definition');
    expect(() => tool('read', { timeout: 30 * 86_400_000 })).toThrow('at most 24 days');
  });
});
