import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { text } from '../../src/graphs/values.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { ListFilter } from '../../src/client/list-filter.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { createStepEmitter } from '../../src/history/emit-steps.js';
import { clientOf } from '../support/clerk.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());
afterAll(async () => await expectKeptReplays());

const clerk = defineAgent({ name: 'clerk', instructions: 'x', model: 'script', description: 'x' });

test('an agent node costs its caller at most twelve events, and its run is listed below the caller', async () => {
  // Only a server lists runs.
  await desk.close();
  desk = await createDesk();
  const graphOf = (name: string, visits: 0 | 1) =>
    defineGraph({
      name,
      state: z.object({ answer: z.string().optional() }),
      answerFrom: 'answer',
      nodes: ({ agent, run }) => ({
        first: run({ run: async () => ({}) }),
        ...(visits === 1 && {
          ask: agent({ agent: clerk, message: () => 'Hello', save: 'answer' }),
        }),
      }),
    });
  const one = graphOf('one', 1).wire({
    start: 'first',
    edges: { first: 'ask', ask: { done: 'end', stopped: 'end', failed: 'end' } },
  });
  const none = graphOf('none', 0).wire({ start: 'first', edges: { first: 'end' } });
  await desk.work([one, none, clerk]);
  desk.script(['Hello.']);
  const called = await desk.run({ agent: 'one', input: {} });
  const plain = await desk.run({ agent: 'none', input: {} });
  expect(called.outcome.answer).toBe('Hello.');
  const client = await clientOf(desk.rig);
  const { workflowId: id } = called.handle;
  const found = async (filter: ListFilter): Promise<readonly string[]> => {
    const { rows } = await client.list({ idPrefix: id, ...filter });
    return rows.map(({ agent }) => agent ?? '').toSorted();
  };
  await vi.waitFor(async () => expect(await found({ all: true })).toEqual(['clerk', 'one']), {
    timeout: 20_000,
    interval: 50,
  });
  expect(await found({})).toEqual(['one']);
  expect(await found({ root: id })).toEqual(['clerk']);
  await client.disconnect();
  expect(called.outcome.steps).toBe(2);
  const events = ({ history }: typeof called): number => history.events?.length ?? 0;
  expect(events(called) - events(plain)).toBeLessThanOrEqual(12);
});

test('an agent node with `continues` resumes the conversation of its previous visit', async () => {
  const prompts: string[] = [];
  const graph = defineGraph({
    name: 'talk',
    state: z.object({ n: z.number().default(0), answer: z.string().optional() }),
    answerFrom: 'answer',
    nodes: ({ agent, run }) => ({
      ask: agent({
        agent: clerk,
        message: (s) => text`Question ${s.n}`,
        save: 'answer',
        continues: true,
        maxVisits: 3,
      }),
      next: run({ run: async ({ n }) => ({ n: n + 1 }) }),
    }),
  }).wire({
    start: 'ask',
    edges: { ask: { done: 'next', stopped: 'end', failed: 'end', capped: 'end' }, next: 'ask' },
  });
  await desk.work([graph, clerk], {
    models: {
      script: {
        call: async ({ messages }) => {
          prompts.push(messages.map(({ role, text: said }) => `${role}: ${said}`).join('\n'));
          return {
            text: `Answer ${prompts.length}`,
            calls: [],
            finish: 'stop',
            usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
          };
        },
      },
    },
  });
  const { outcome } = await desk.run({ agent: 'talk', input: {} });
  expect(outcome.answer).toBe('Answer 3');
  expect(prompts).toEqual([
    'user: Question 0',
    'user: Question 0\nassistant: Answer 1\nuser: Question 1',
    'user: Question 0\nassistant: Answer 1\nuser: Question 1\nassistant: Answer 2\nuser: Question 2',
  ]);
});

test('a judge sees what the node before it wrote, and its own message', async () => {
  const writer = defineAgent({ name: 'writer', instructions: 'Write.', model: 'script' });
  const graph = (name: string, hasMessage: boolean) =>
    defineGraph({
      name,
      instructions: 'Judge.',
      model: 'script',
      state: z.object({ text: z.string().default(''), draft: z.string().default('') }),
      messageTo: 'text',
      answerFrom: 'draft',
      nodes: ({ agent, decide }) => ({
        write: agent({ agent: writer, message: (s) => s.text, save: 'draft', maxVisits: 2 }),
        judge: decide({
          output: z.object({ good: z.boolean() }),
          ...(hasMessage && { message: (s) => text`Is "${s.draft}" good?` }),
        }),
      }),
    }).wire({
      start: 'write',
      edges: {
        write: { done: 'judge', stopped: 'end', failed: 'end', capped: 'end' },
        judge: { done: 'write' },
      },
    });
  const prompts: string[][] = [];
  await desk.work([graph('by-default', false), graph('by-message', true), writer], {
    models: {
      script: {
        call: async ({ instructions, messages }) => {
          const isJudge = instructions === 'Judge.';
          if (isJudge) prompts.push(messages.map(({ role, text: said }) => `${role}: ${said}`));
          const said = isJudge ? '{"good":false}' : 'A draft.';
          const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
          return { text: said, calls: [], finish: 'stop', usage };
        },
      },
    },
  });
  await desk.run({ agent: 'by-default', message: 'Write!' });
  const { projection, history } = await desk.run({ agent: 'by-message', message: 'Write!' });
  const emit = createStepEmitter('run');
  const steps = (history.events ?? []).map(decodeEvent).flatMap((event) => emit(event));
  expect(
    steps.flatMap((step) => {
      if (step.type === 'node-ended') return [[step.node, step.exit, step.patch]];
      return step.type === 'turn-ended' ? [['turn-ended']] : [];
    }),
  ).toEqual([
    ['write', 'done', { draft: 'A draft.' }],
    ['judge', 'done', undefined],
    ['write', 'done', undefined],
    ['judge', 'done', undefined],
    ['write', 'capped', undefined],
    ['turn-ended'],
  ]);
  const own = 'user: Is "A draft." good?';
  const reply = 'assistant: {"good":false}';
  const draft = 'assistant: A draft.';
  expect(prompts).toEqual([
    ['user: Write!', draft, 'user: Continue.'],
    ['user: Write!', draft, 'user: Continue.', reply, 'user: Continue.', draft, 'user: Continue.'],
    ['user: Write!', own],
    ['user: Write!', own, reply, own],
  ]);
  expect(projection.messages.map(({ role }) => role)).toEqual([
    'user',
    'user',
    'assistant',
    'user',
    'assistant',
    'assistant',
  ]);
});

describe('a decide node with an output', () => {
  const sort = (attempts: number) =>
    defineGraph({
      name: 'sort',
      instructions: 'Sort the mail.',
      model: 'script',
      state: z.object({
        kind: z.object({ urgent: z.boolean() }).optional(),
        error: z.object({ type: z.string() }).optional(),
      }),
      errorTo: 'error',
      nodes: ({ decide }) => ({
        sort: decide({ output: z.object({ urgent: z.boolean() }), save: 'kind', attempts }),
      }),
    }).wire({ start: 'sort', edges: { sort: { done: 'end', failed: 'end' } } });

  test('saves the valid reply, after a repair', async () => {
    await desk.work([sort(3)]);
    desk.script(['{"urgent":"very"}', '{"urgent":true}']);
    const { outcome, projection } = await desk.run({ agent: 'sort', message: 'help!' });
    expect(outcome.output).toEqual({ kind: { urgent: true } });
    expect(projection.messages.at(-1)?.text).toBe('{"urgent":true}');
  });

  test('leaves by `failed` if no reply is valid', async () => {
    await desk.work([sort(2)]);
    desk.script(['no', 'never']);
    const { outcome } = await desk.run({ agent: 'sort', message: 'help!' });
    expect(outcome).toMatchObject({
      status: 'completed',
      output: { error: { node: 'sort', type: 'invalid_output' } },
    });
  });
});

test('a node sets a shorter timeout for a tool than the tool itself', async () => {
  const wait = defineTool({
    name: 'wait_long',
    description: 'x',
    input: z.object({}),
    effect: 'read',
    execute: async (_, { signal }) =>
      await new Promise<string>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')));
      }),
  });
  const graph = defineGraph({
    name: 'hasty',
    state: z.object({ error: z.object({ type: z.string() }).optional() }),
    errorTo: 'error',
    tools: [wait],
    nodes: ({ tool }) => ({
      wait: tool({ tool: wait, arguments: () => ({}), timeout: 200 }),
    }),
  }).wire({ start: 'wait', edges: { wait: { done: 'end', failed: 'end' } } });
  await desk.work([graph]);
  const { outcome } = await desk.run({ agent: 'hasty', input: {} });
  expect(outcome.output).toMatchObject({ error: { node: 'wait', type: 'timeout' } });
});

test('a confirm node in an unattended run is a no, without a request', async () => {
  const graph = defineGraph({
    name: 'careful',
    state: z.object({ sent: z.boolean().default(false) }),
    nodes: ({ confirm, run }) => ({
      ask: confirm({ show: () => 'Send it?' }),
      send: run({ run: async () => ({ sent: true }) }),
    }),
  }).wire({ start: 'ask', edges: { ask: { yes: 'send', no: 'end' }, send: 'end' } });
  await desk.work([graph]);
  const { outcome } = await desk.run({ agent: 'careful', input: {}, unattended: 'deny' });
  expect(outcome.output).toEqual({ sent: false });
});

test('an agent passes its input to a graph that reads no message', async () => {
  const double = defineGraph({
    name: 'double',
    description: 'Doubles a number.',
    state: z.object({ n: z.number(), at: z.coerce.date().optional() }),
    nodes: ({ run }) => ({ double: run({ run: async ({ n }) => ({ n: n * 2 }) }) }),
  }).wire({ start: 'double', edges: { double: 'end' } });
  const boss = defineAgent({
    name: 'boss',
    instructions: 'x',
    model: 'script',
    agents: [double],
  });
  expect(boss.tools.get('double')?.parameters).toMatchObject({
    properties: { input: { properties: { n: { type: 'number' } } } },
  });
  await desk.work([boss]);
  desk.script([{ double: { input: { n: 'two' } } }, { double: { input: { n: 21 } } }, 'It is 42.']);
  const { outcome, projection } = await desk.run({ agent: 'boss', message: 'double 21' });
  expect(outcome.answer).toBe('It is 42.');
  const results = projection.messages.flatMap((one) => (one.role === 'tool' ? [one.text] : []));
  expect(results).toEqual([expect.stringContaining('invalid_arguments'), '{"n":42}']);
});
