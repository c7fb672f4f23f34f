import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import type { PerdureClient } from '../../src/client/client-types.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import type { StreamEvent } from '../../src/live/stream.js';
import { ModelError } from '../../src/models/model.js';
import type { NodeContext } from '../../src/tools/tool.js';
import { clientOf } from '../support/clerk.js';
import { gate } from '../support/gate.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { expectKeptReplays } from '../support/replays.js';
import type { Rig } from '../support/rig.js';
import { createStreamingAgent } from '../support/streaming-agent.js';

let rig: Rig;
let client: PerdureClient;
const talker = createStreamingAgent();
beforeEach(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
});
afterEach(async () => {
  await client.disconnect();
  await rig.close();
});
afterAll(async () => await expectKeptReplays());

/** Registers graphs whose models are scripted by the messages that they get. */
async function work(...graphs: readonly ReturnType<typeof graphOf>[]): Promise<void> {
  await rig.worker(graphs, { models: { talk: talker.model } });
}

type Write = (generate: NodeContext['generate']) => Promise<string>;

/** A graph with one node, which calls models once the test reads its run. */
function graphOf(write: Write, ready: Promise<void>) {
  return defineGraph({
    name: 'writer',
    state: z.object({ text: z.string(), answer: z.string().optional() }),
    messageTo: 'text',
    answerFrom: 'answer',
    model: 'talk',
    nodes: ({ run }) => ({
      write: run({
        attempts: 2,
        run: async (_, { generate }) => {
          await ready;
          return { answer: await write(generate) };
        },
      }),
    }),
  }).wire({ start: 'write', edges: { write: 'end' } });
}

/** The texts of the replies in progress by item and reply, as a reader has them. */
function createTexts() {
  const texts = new Map<string, string>();
  const places: object[] = [];
  return {
    places,
    shown: () => Object.fromEntries(texts),
    receive(event: StreamEvent): void {
      if (event.type !== 'node-delta' && event.type !== 'node-superseded') return;
      const key = `${event.item ?? '-'}/${event.reply}`;
      if (event.type === 'node-superseded') {
        texts.delete(key);
        return;
      }
      const { turn, node, attempt, reply, text, offset } = event;
      if (!texts.has(key)) places.push({ turn, node, attempt, reply });
      texts.set(key, (texts.get(key) ?? '').slice(0, offset) + text);
    },
  };
}

test('a reader of a run gets the replies to a function as they are written', async () => {
  const [ready, half, late] = [gate(), gate(), gate()];
  talker.on('Sort.', async ({ emit, request }) => {
    const text = request.messages.length === 1 ? '{"kind":"letter"}' : '{"kind":"bill"}';
    emit(text.slice(0, 9));
    await half.wait();
    emit(text.slice(9));
    return text;
  });
  talker.on('Answer.', async ({ emit }) => {
    emit('It is ');
    await late.wait();
    return 'It is paid.';
  });
  await work(
    graphOf(async (generate) => {
      const output = z.object({ kind: z.literal('bill') });
      const { kind } = await generate({ message: 'Sort.', output });
      expect(kind).toBe('bill');
      return (await generate({ message: 'Answer.' })).toUpperCase();
    }, ready.wait()),
  );
  const run = await client.start('writer', { message: 'mail' });
  const [texts, lateTexts] = [createTexts(), createTexts()];
  const seen: string[] = [];
  const answer: string[] = [];
  const reading = (async () => {
    for await (const text of client.text(run)) answer.push(text);
  })();
  for await (const event of client.stream(run)) {
    texts.receive(event);
    const shown = JSON.stringify(texts.shown());
    if (event.type.startsWith('node-')) seen.push(`${event.type} ${shown}`);
    if (event.type === 'node-begun') ready.release();
    if (texts.shown()['-/1'] === '{"kind":"') half.release();
    if (texts.shown()['-/3'] !== 'It is ') continue;
    for await (const one of client.stream(run, { after: 'now' })) {
      lateTexts.receive(one);
      if (Object.keys(lateTexts.shown()).length === 2) break;
    }
    late.release();
  }
  await reading;
  expect(texts.places).toEqual(
    [1, 2, 3].map((reply) => ({ turn: 1, node: 'write', attempt: 1, reply })),
  );
  // What is written shortly before an end may come only with the end.
  expect(seen.filter((one) => !one.startsWith('node-delta'))).toEqual([
    'node-begun {}',
    'node-superseded {}',
    ...['node-replied', 'node-replied', 'node-replied', 'node-ended'].map(
      (type) => `${type} {"-/2":"{\\"kind\\":\\"bill\\"}","-/3":"It is "}`,
    ),
  ]);
  expect(lateTexts.shown()).toEqual({ '-/2': '{"kind":"bill"}', '-/3': 'It is ' });
  expect(answer).toEqual(['IT IS PAID.']);
});

test('a second attempt voids what the first one wrote, and shows again what was paid for', async () => {
  const [ready, seen] = [gate(), gate()];
  talker.on('First.', async ({ emit }) => {
    emit('one');
    return 'one';
  });
  talker.on('Second.', async ({ emit, number }) => {
    emit(number === 1 ? 'tw' : 'two');
    if (number === 1) await seen.wait();
    if (number === 1) throw new ModelError('lost', { kind: 'retry', type: 'reset' });
    return 'two';
  });
  await work(
    graphOf(async (generate) => {
      const first = await generate({ message: 'First.' });
      return `${first} ${await generate({ message: 'Second.' })}`;
    }, ready.wait()),
  );
  const run = await client.start('writer', { message: 'count' });
  const texts = createTexts();
  const voided: object[] = [];
  for await (const event of client.stream(run)) {
    texts.receive(event);
    if (event.type === 'node-superseded') voided.push(event);
    if (event.type === 'node-begun') ready.release();
    if (texts.shown()['-/2'] === 'tw') seen.release();
  }
  expect(voided).toMatchObject([
    { node: 'write', attempt: 1, reply: 2 },
    { node: 'write', attempt: 1, reply: 1 },
  ]);
  expect(texts.shown()).toEqual({ '-/1': 'one', '-/2': 'two' });
  expect(texts.places.map((place) => Object.values(place))).toEqual([
    [1, 'write', 1, 1],
    [1, 'write', 1, 2],
    [1, 'write', 2, 1],
    [1, 'write', 2, 2],
  ]);
});

test('the replies to the items of an each are marked with their items', async () => {
  const [ready, both] = [gate(), gate()];
  for (const item of ['a', 'b']) {
    talker.on(`Item ${item}`, async ({ emit }) => {
      emit(`about ${item}`);
      await both.wait();
      return `about ${item}`;
    });
  }
  const graph = defineGraph({
    name: 'items',
    state: z.object({ list: z.array(z.string()), results: z.array(z.json()).optional() }),
    model: 'talk',
    nodes: ({ each }) => ({
      all: each({
        over: (s) => s.list,
        run: async (_, item: string, { generate }) => {
          await ready.wait();
          return await generate({ message: `Item ${item}` });
        },
        save: 'results',
      }),
    }),
  }).wire({ start: 'all', edges: { all: { done: 'end', failed: 'end' } } });
  await rig.worker([graph], { models: { talk: talker.model } });
  const run = await client.start('items', { input: { list: ['a', 'b'] } });
  const texts = createTexts();
  const replied = new Set<number | undefined>();
  for await (const event of client.stream(run)) {
    texts.receive(event);
    if (event.type === 'node-begun') ready.release();
    if (Object.keys(texts.shown()).length === 2) both.release();
    if (event.type === 'node-replied') replied.add(event.item);
  }
  expect(texts.shown()).toEqual({ '1/1': 'about a', '2/1': 'about b' });
  expect(replied).toEqual(new Set([1, 2]));
});
