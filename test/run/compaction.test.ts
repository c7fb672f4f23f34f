import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { historyFromJson } from '../../src/history/history-event.js';
import { project } from '../../src/history/projection.js';
import { fileArchive } from '../../src/storage/file-stores.js';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { messageTokens } from '../../src/core/transcript/transcript.js';
import { defineTool } from '../../src/tools/define-tool.js';
import {
  ModelError,
  type Model,
  type ModelReply,
  type ModelRequest,
} from '../../src/models/model.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { messagesIn, segmentsOf, turnsIn, type Segment } from '../support/segments.js';

const WINDOW = 3_000;
const LONG = 'x'.repeat(900);

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => await rig.close());

const note = defineTool({
  name: 'note',
  description: 'writes a text down',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: async ({ text }) => `${text} ${LONG}`,
});
const agent = defineAgent({ name: 'clerk', instructions: 'do as told', model: 'm', tools: [note] });

interface Recorded extends Model {
  readonly prompts: ModelRequest[];
  readonly summaries: ModelRequest[];
}

/** Obeys, counts tokens like a provider, and summarizes by reporting the size of its input. */
function recordedModel(
  limit = Infinity,
  summary: () => string = () => 'what was before',
): Recorded {
  const prompts: ModelRequest[] = [];
  const summaries: ModelRequest[] = [];
  return {
    prompts,
    summaries,
    call: async (request) => {
      const inputTokens = tokensOf(request.messages);
      if (inputTokens > limit) {
        throw new ModelError('too long', { kind: 'context_too_long', type: 'context_length' });
      }
      const usage = { inputTokens, outputTokens: 5, cachedTokens: 0 };
      if (request.tools.length > 0) {
        prompts.push(structuredClone(request));
        return { ...obey(request), usage };
      }
      summaries.push(structuredClone(request));
      const reply: ModelReply = { text: summary(), calls: [], finish: 'stop', usage };
      return reply;
    },
  };
}

function tokensOf(messages: readonly PromptMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/** Calls `note` as often as the newest user message requests, regardless of summaries. */
function obey({ messages }: ModelRequest): ModelReply {
  const person = messages.findLast(({ role, text }) => role === 'user' && !text.startsWith('['));
  const text = person?.text ?? '';
  const wanted = Number(/^steps (\d+)/.exec(text)?.[1] ?? 0);
  const last = messages.at(-1);
  const done = last?.role === 'tool' ? Number(/#(\d+)/.exec(last.text)?.[1]) : 0;
  if (done >= wanted) return { text: `done: ${text}`, calls: [], finish: 'stop' };
  const given = JSON.stringify({ text: `${text.slice(0, 20)} #${done + 1}` });
  return { text: '', calls: [{ name: 'note', arguments: given }], finish: 'calls' };
}

/** Each call has its result directly after it, and nothing else has one. */
function expectWhole(messages: readonly PromptMessage[]): void {
  const open: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') expect(open.shift()).toBe(message.callId);
    else expect(open).toEqual([]);
    if (message.role === 'assistant') open.push(...(message.calls ?? []).map(({ id }) => id));
  }
  expect(open).toEqual([]);
}

async function converse(
  window: number | undefined,
  model: Recorded,
  { segment = { steps: 100, bytes: 1e6 }, turns = 6 } = {},
): Promise<readonly Segment[]> {
  await rig.stopWorkers();
  const entry = window === undefined ? model : { ...model, window };
  await rig.worker([agent], { models: { m: entry }, segment });
  const first = await rig.start({ agent: 'clerk', open: true, message: 'steps 2 first' });
  await outcomeOf(first, 1);
  await ask(first, { message: 'the code is 4711', pin: true });
  await outcomeOf(first, 2);
  for (let turn = 3; turn <= turns; turn += 1) {
    await ask(first, `steps 2 turn ${turn} ${LONG}`);
    expect(await outcomeOf(first, turn)).toMatchObject({ status: 'completed', steps: 3 });
  }
  await first.executeUpdate(closeUpdate, { args: [{}] });
  await first.result();
  return await segmentsOf(rig.client, first.workflowId);
}

describe("a conversation that exceeds the model's window", () => {
  test.each([
    ['in one segment', { steps: 100, bytes: 1e7 }],
    ['through many segments', { steps: 4, bytes: 1e7 }],
  ])('is summarized, %s', async (_where, size) => {
    const model = recordedModel();
    const segments = await converse(WINDOW, model, { segment: size, turns: 7 });
    expect(model.summaries.length).toBeGreaterThan(2);
    for (const { messages } of model.prompts) {
      expectWhole(messages);
      expect(tokensOf(messages)).toBeLessThan(WINDOW);
    }
    const later = model.prompts.at(-1)?.messages ?? [];
    expect(later[0]?.text).toBe('the code is 4711');
    const summaries = later.filter(({ text }) => text.startsWith('[Summary of messages 0 to'));
    expect(summaries).toHaveLength(1);
    expect(summaries[0]?.text).toContain('what was before');

    const transcript = messagesIn(segments);
    expect(transcript.map(({ n }) => n)).toEqual(transcript.map((_, index) => index));
    const marks = transcript.filter((message) => message.role === 'user' && message.compacts);
    expect(marks).toHaveLength(model.summaries.length);
    expect(turnsIn(segments)).toHaveLength(7);

    const [started] = segments[0]?.history.events ?? [];
    const { workflowId } = started?.workflowExecutionStartedEventAttributes ?? {};
    const run = { namespace: 'default', id: workflowId ?? '' };
    const archive = fileArchive(join(rig.home, 'archive'));
    const kept = new Map<number, string>();
    for (const entry of await archive.list(run)) {
      const json: unknown = JSON.parse(await archive.read(run, entry));
      const { events } = historyFromJson(json as { readonly events: readonly unknown[] });
      const { messages } = project((events ?? []).map(decodeEvent));
      for (const { n, text } of messages) kept.set(n, text);
    }
    expect([...kept].toSorted(([one], [other]) => one - other)).toEqual(
      transcript.map(({ n, text }) => [n, text]),
    );
  });

  test('is summarized if the provider finds it too long and its size is unknown', async () => {
    const model = recordedModel(2_500);
    const segments = await converse(undefined, model);
    expect(model.summaries.length).toBeGreaterThan(1);
    for (const { messages } of model.prompts) expectWhole(messages);
    expect(turnsIn(segments).every(({ outcome }) => outcome.status === 'completed')).toBe(true);
  });

  test('continues unchanged if the summary is empty', async () => {
    const model = recordedModel(Infinity, () => '');
    const segments = await converse(WINDOW, model);
    expect(model.summaries.length).toBeGreaterThan(0);
    expect(model.summaries.length).toBeLessThan(12);
    expect(model.prompts.at(-1)?.messages[0]?.text).toBe('steps 2 first');
    expect(turnsIn(segments)).toHaveLength(6);
  });

  test('ends the turn with its reason if nothing helps', async () => {
    const model = recordedModel(100);
    await rig.stopWorkers();
    await rig.worker([agent], { models: { m: model } });
    const { outcome } = await rig.run({ agent: 'clerk', message: LONG });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'context_too_long' });
  });
});
