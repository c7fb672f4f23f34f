import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { transcript, type TranscriptOptions } from '../../src/cli/commands/transcript.js';
import { palette } from '../../src/cli/format/format.js';
import { createStepLines } from '../../src/cli/run-view/step-lines.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { DurableEvent } from '../../src/history/durable-steps.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import type { Usage } from '../../src/core/transcript/outcome.js';
import { clientOf } from '../support/clerk.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';

const REFUSED = '{"name": "Ann", "age": "forty"}';
const ACCEPTED = '{"name": "Ann", "age": 40}';
let rig: Rig;
let client: PerdureClient;
let ended: Ended;

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  const output = z.object({ name: z.string(), age: z.number() });
  const agent = defineAgent({ name: 'a', instructions: 'extract', model: 'm', output });
  const usage = { inputTokens: 10, outputTokens: 9, cachedTokens: 4, reasoningTokens: 7 };
  const script = scriptedModel([
    { ...replyText(REFUSED), usage },
    replyText('what?'),
    replyText(ACCEPTED),
  ]);
  const price = { input: 2, cachedInput: 1, output: 8 };
  await rig.worker([agent], { models: { m: { ...script, price } } });
  ended = await rig.run({ agent: 'a', message: 'Ann is 40' });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

async function shown(options: Partial<TranscriptOptions> = {}): Promise<CommandOutput> {
  const place = {
    client: rig.client,
    address: inject('temporalAddress'),
    taskQueue: rig.taskQueue,
    home: rig.home,
  };
  return await runInProcess(transcript, { id: ended.handle.workflowId, ...options }, place);
}

describe('refused answers', () => {
  test('are omitted from the transcript unless requested', async () => {
    const id = ended.handle.workflowId;
    const plain = await client.transcript(id);
    expect(plain.messages.map(({ text }) => text)).toEqual(['Ann is 40', ACCEPTED]);
    expect([plain.total, plain.completeFrom]).toEqual([6, 0]);
    const { messages } = await client.transcript(id, { side: true });
    expect(messages.map(({ n }) => n)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(messages.filter((one) => one.role !== 'tool' && one.side).map(({ n }) => n)).toEqual([
      1, 2, 3, 4,
    ]);
    expect(messages[1]?.text).toBe(REFUSED);
  });

  test('are shown by the command with --side, marked as such', async () => {
    const plain = await shown();
    expect(plain.stdout).not.toContain('forty');
    expect(plain.stderr).toContain('4 messages about refused answers');
    const { stdout, stderr } = await shown({ side: true });
    expect(stdout).toMatch(
      /^#1 model · refused answer · turn 1.*\n {2}\{"name": "Ann", "age": "fo/m,
    );
    expect(stdout).toMatch(/^#2 perdure · about the refused answer · turn 1/m);
    expect(stdout).toMatch(/^#5 model · turn 1/m);
    expect(stderr).not.toContain('--side');
  });

  test('are separate events, so that no reader mistakes them for the answer', async () => {
    const events: DurableEvent[] = [];
    for await (const event of client.events(ended.handle.workflowId)) events.push(event);
    expect(events.map(({ type }) => type)).toEqual([
      'run-started',
      'turn-begun',
      'message-added',
      'answer-refused',
      'answer-refused',
      'model-replied',
      'turn-ended',
      'run-ended',
    ]);
    const refused = events.find((event) => event.type === 'answer-refused');
    expect(refused).toMatchObject({ message: { text: REFUSED } });
    expect(refused?.type === 'answer-refused' && refused.problem).toContain('age');
  });

  test('have costs, and the costs of the steps add up to the cost of the turn', async () => {
    const events: DurableEvent[] = [];
    for await (const event of client.events(ended.handle.workflowId)) events.push(event);
    const paid = events.flatMap((event) => ('usage' in event && event.usage ? [event.usage] : []));
    expect(paid).toHaveLength(3);
    const sum = (of: (usage: Usage) => number): number =>
      paid.reduce((total, usage) => total + of(usage), 0);
    const { usage } = ended.outcome;
    expect(sum(({ inputTokens }) => inputTokens)).toBe(usage.inputTokens);
    expect(sum(({ costUsd }) => costUsd ?? Number.NaN)).toBeCloseTo(usage.costUsd ?? -1, 12);
    expect(usage.costUsd).toBeGreaterThan(0);
    expect(sum(({ reasoningTokens = 0 }) => reasoningTokens)).toBe(7);
    expect(usage.reasoningTokens).toBe(7);
  });

  test('are shown in one line each to a follower of the run', async () => {
    const events: DurableEvent[] = [];
    for await (const event of client.events(ended.handle.workflowId)) events.push(event);
    const tell = createStepLines(palette(false), {
      run: 'x',
      resume: null,
      runnable: (text) => text,
    });
    const lines = tell.steps(events, ended.projection);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^answer refused, attempt 1 of 10: .*age/);
    expect(lines[1]).toMatch(/^answer refused, attempt 2 of 10: /);
  });
});
