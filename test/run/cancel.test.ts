import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;
const begun = new Map<string, () => void>();
const aborted = new Map<string, number>();

const wait = (name: string, heedsSignal: boolean) =>
  defineTool({
    name,
    description: 'waits',
    input: z.object({ run: z.string() }),
    effect: heedsSignal ? 'read' : 'once',
    async execute({ run }, { signal }) {
      begun.get(run)?.();
      signal.addEventListener('abort', () => aborted.set(run, Date.now()));
      await new Promise((_, reject) => {
        if (heedsSignal) signal.addEventListener('abort', () => reject(new Error('stopped')));
      });
    },
  });
const quick = defineTool({
  name: 'quick',
  description: 'is quick',
  input: z.object({}),
  effect: 'read',
  execute: async () => 'quick result',
});

beforeAll(async () => {
  [rig, stub] = [await createMemoryRig(), await startStub()];
  const agent = defineAgent({
    name: 'a',
    instructions: 'hi',
    model: 'm',
    tools: [wait('wait', true), wait('deaf', false), quick],
  });
  await rig.worker([agent], { models: { m: openAiModel({ baseUrl: stub.baseUrl }) } });
});
afterAll(async () => {
  await rig.close();
  await stub.close();
});

async function startWaiting(tool: string, run: string): Promise<WorkflowHandle> {
  stub.scriptFor(
    run,
    replyCalls(
      [
        { name: 'quick', arguments: {} },
        { name: tool, arguments: { run } },
      ],
      { text: 'let me see' },
    ),
  );
  const running = new Promise<void>((resolve) => begun.set(run, resolve));
  const handle = await rig.start({ agent: 'a', message: run });
  await running;
  return handle;
}

describe('a native cancel', () => {
  test('aborts a running tool, answers every open call, and ends the run as Canceled', async () => {
    const handle = await startWaiting('wait', 'cancel-tool');
    await handle.cancel();
    const { outcome, projection } = await rig.end(handle);
    expect(outcome).toMatchObject({
      status: 'cancelled',
      reason: 'cancelled',
      answer: 'let me see',
    });
    const texts = projection.state?.transcript.messages.map(({ text }) => text) ?? [];
    expect(texts.slice(2)).toEqual(['quick result', expect.stringContaining('cancelled')]);
    const { status, memo, searchAttributes } = await handle.describe();
    expect(status.name).toBe('CANCELLED');
    expect(memo).toMatchObject({ turn: 1, status: 'cancelled', reason: 'cancelled', outcome });
    expect(searchAttributes).toMatchObject({ AgentStatus: ['done'], AgentReason: ['cancelled'] });
    expect(aborted.has('cancel-tool')).toBe(true);
  });

  test('does not wait for a tool that ignores it, and reports the unknown outcome', async () => {
    const handle = await startWaiting('deaf', 'cancel-deaf');
    await handle.cancel();
    const { projection } = await rig.end(handle);
    expect(projection.state?.transcript.messages.at(-1)?.text).toContain('is unknown');
  });

  test('closes the connection of a model call', async () => {
    stub.scriptFor('cancel-model', replyText('too late', { holdBeforeHeaders: 'cancel-model' }));
    const handle = await rig.start({ agent: 'a', message: 'cancel-model' });
    await stub.barrier('cancel-model').reached;
    await handle.cancel();
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'cancelled', answer: null, steps: 0 });
    const request = stub.requests.find(({ text }) => text.includes('cancel-model'));
    expect(await request?.ended).toBe('client');
  });
});

describe('a time limit', () => {
  test('interrupts the turn and closes it with an answer', async () => {
    stub.scriptFor(
      'late',
      replyCalls([{ name: 'wait', arguments: { run: 'late' } }]),
      replyText('in short'),
    );
    const { outcome, projection } = await rig.run({
      agent: 'a',
      message: 'late',
      limits: { wallMs: 700 },
    });
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'wallMs', answer: 'in short' });
    expect(projection.state?.transcript.messages[2]?.text).toContain('cancelled');
  });
});
