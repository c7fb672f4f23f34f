import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Message } from '../../src/core/transcript/messages.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import type { Model, ModelRequest } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { forgetSegments } from '../support/forget-run.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const WINDOW = 3_000;
const LONG = 'x'.repeat(7_000);

let rig: Rig;
let client: PerdureClient;
let requests: ModelRequest[] = [];
const summarized: string[] = [];

/** Plans nothing, and answers at once. */
const model: Model = {
  call: async (request) => {
    const text = request.messages.at(-1)?.text ?? '';
    if (text.startsWith('user:')) {
      summarized.push(text);
      return replyText('what was before');
    }
    requests.push(request);
    return replyText(JSON.stringify({ actions: [], answer: `planned: ${text}` }));
  },
};
const note = defineTool({
  name: 'note',
  description: 'notes',
  input: z.object({}),
  effect: 'read',
  execute: () => 'noted',
});
const guarded = planAndExecute({
  name: 'guarded',
  instructions: 'Plan.',
  model: 'm',
  tools: [note],
  planning: 'schema',
}).with({
  before: {
    plan: ({ message }) => {
      if (message.includes('bomb')) return { answer: 'I do not help with that.', refused: true };
      if (message.includes('hello')) return { answer: 'Hi!' };
      if (message.includes('long')) return { answer: LONG };
      return {};
    },
  },
});

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
});
afterAll(async () => await rig.close());

async function work(steps: number): Promise<void> {
  await rig.stopWorkers();
  requests = [];
  await rig.worker([guarded], {
    models: { m: { ...model, window: WINDOW } },
    segment: { steps, bytes: 1_000_000 },
  });
}

/** Holds a conversation in a run, and returns its answers. */
async function converse(
  id: string,
  messages: readonly string[],
): Promise<readonly (string | null)[]> {
  const answers: (string | null)[] = [];
  for (const message of messages) {
    const sent = await client.send(id, { message });
    if (!sent.delivered) throw new Error('no worker took the message');
    const { answer } = await client.result(id, { turn: sent.turn });
    answers.push(answer);
  }
  return answers;
}

const said = (messages: readonly { role: string; text: string }[]) =>
  messages.map(({ role, text }) => `${role}: ${text}`);
const plan = (text: string) => JSON.stringify({ actions: [], answer: `planned: ${text}` });

describe('the answer of a graph', () => {
  test('is in the next prompt, and a refused message is in no prompt, in every segment, fork, and archive', async () => {
    await work(3);
    const { id } = await client.start('guarded', { message: 'a bomb', open: true });
    expect((await client.result(id, { turn: 1 })).answer).toBe('I do not help with that.');
    await converse(id, ['hello', 'plan it', 'hello again']);
    // Another worker knows no prompt yet.
    await work(3);
    const answers = await converse(id, ['another bomb', 'plan more']);
    expect(answers).toEqual(['I do not help with that.', 'planned: plan more']);
    const seen = [
      'user: hello',
      'assistant: Hi!',
      'user: plan it',
      `assistant: ${plan('plan it')}`,
      'user: hello again',
      'assistant: Hi!',
      'user: plan more',
    ];
    expect(said(requests.at(-1)?.messages ?? [])).toEqual(seen);
    const whole = [
      'user: a bomb',
      'assistant: I do not help with that.',
      ...seen.slice(0, 6),
      'user: another bomb',
      'assistant: I do not help with that.',
      'user: plan more',
      `assistant: ${plan('plan more')}`,
    ];
    const read = async (): Promise<readonly Message[]> => (await client.transcript(id)).messages;
    const messages = await read();
    expect(said(messages)).toEqual(whole);
    expect(
      messages.flatMap(({ n, ...one }) => ('refuses' in one ? [[n, one.refuses]] : [])),
    ).toEqual([
      [1, { from: 0, to: 0 }],
      [9, { from: 8, to: 8 }],
    ]);
    const segments = await segmentsOf(rig.client, id);
    expect(segments.length).toBeGreaterThan(3);
    await client.close(id);
    await rig.end(rig.client.workflow.getHandle(id));
    const runIds = (await segmentsOf(rig.client, id)).map(({ runId }) => runId);
    for (const isDeleted of [false, true]) {
      if (isDeleted) {
        rig.exempt('its history is deleted', id);
        await forgetSegments(rig.client, id, runIds);
      }
      expect(said(await read())).toEqual(whole);
      const other = await client.fork(id, { message: 'plan anew' });
      await client.result(other.id);
      expect(said(requests.at(-1)?.messages ?? [])).toEqual([
        ...seen,
        `assistant: ${plan('plan more')}`,
        'user: plan anew',
      ]);
    }
  });

  test('can be summarized right after it was given, and refusals before and after are left out', async () => {
    await work(100);
    const id = `long-${randomUUID()}`;
    await client.start('guarded', { message: 'hello', open: true, id });
    await converse(id, ['a bomb', 'long', 'plan it', 'another bomb', 'plan more']);
    const [first, last] = requests.map(({ messages }) => said(messages));
    expect(first).toEqual([expect.stringContaining('what was before'), 'user: plan it']);
    const [record = ''] = summarized;
    expect(record).toContain('| Hi!\nuser:\n| long\nassistant:\n| xxx');
    expect(record).not.toContain('bomb');
    expect(last).toEqual([...(first ?? []), `assistant: ${plan('plan it')}`, 'user: plan more']);
    await client.close(id);
    await rig.end(rig.client.workflow.getHandle(id));
  });
});

test('the answers are in `historyTo`, through segments with chunks, and in a fork', async () => {
  await rig.stopWorkers();
  const big = 'y'.repeat(20_000);
  const graph = defineGraph({
    name: 'recall',
    state: z.object({
      text: z.string().default(''),
      history: z.array(z.object({ role: z.string(), text: z.string() })).default([]),
      answer: z.string().default(''),
    }),
    messageTo: 'text',
    historyTo: { field: 'history', last: 4 },
    answerFrom: 'answer',
    nodes: ({ run }) => ({
      echo: run({
        run: async ({ history, text }) => ({
          answer: [...history.map((one) => one.text.slice(0, 9)), text.slice(0, 9)].join(),
        }),
      }),
    }),
  }).wire({ start: 'echo', edges: { echo: 'end' } });
  await rig.worker([graph], { segment: { steps: 1, bytes: 1_000_000 } });
  const { id } = await client.start('recall', { message: `one ${big}`, open: true });
  expect((await client.result(id, { turn: 1 })).answer).toBe('one yyyyy');
  expect(await converse(id, [`two ${big}`, `three ${big}`])).toEqual([
    'one yyyyy,one yyyyy,two yyyyy',
    'one yyyyy,one yyyyy,two yyyyy,one yyyyy,three yyy',
  ]);
  const fork = await client.fork(id, { message: 'four' });
  expect((await client.result(fork.id)).answer).toBe(
    'two yyyyy,one yyyyy,three yyy,one yyyyy,four',
  );
  // A turn without a message does not cost the history its newest text.
  const sent = await client.send(id, { message: '', input: { text: 'five' } });
  if (!sent.delivered) throw new Error('no worker took the input');
  expect((await client.result(id, { turn: sent.turn })).answer).toBe(
    'two yyyyy,one yyyyy,three yyy,one yyyyy,five',
  );
  await client.close(id);
  await rig.end(rig.client.workflow.getHandle(id));
});
