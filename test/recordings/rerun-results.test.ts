import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { isObject } from '../../src/core/text/json.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import type { MemoryOptions } from '../../src/memory/run-in-memory.js';
import type { Recording } from '../../src/recordings/recording.js';
import { rerun } from '../../src/recordings/rerun.js';
import { answer, approve, decision, kill, replyCall, replyText } from '../../src/testing.js';
import { artifact, screenshot } from '../../src/tools.js';
import { CallFault } from '../../src/tools/arguments/check-arguments.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { playAndRecord, useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const input = z.object({ n: z.number() });
const common = { description: 'Does.', input } as const;
const ROWS = Array.from({ length: 300 }, (_, id) => ({ id, euros: id * 2 }));

const priced = defineTool({
  ...common,
  name: 'priced',
  effect: 'read',
  output: z.object({ euros: z.number() }),
  execute: ({ n }) => ({ euros: n }),
});
const written = defineTool({
  ...common,
  name: 'written',
  effect: 'read',
  output: z.string().transform((text) => Number(text)),
  execute: ({ n }) => `${n}`,
});
const state = defineTool({
  ...common,
  name: 'state',
  effect: 'read',
  failed: (result) => !isObject(result) || result['status'] !== 'ok',
  execute: ({ n }) => ({ status: n > 0 ? 'ok' : 'down', message: 'it is down' }),
});
const reported = defineTool({
  ...common,
  name: 'reported',
  effect: 'read',
  output: z.object({ error: z.string() }),
  execute: ({ n }) => ({ error: `none in ${n}` }),
});
const list = defineTool({
  ...common,
  name: 'list',
  effect: 'read',
  execute: ({ n }) =>
    n === 0 ? artifact('some words') : artifact(ROWS, { name: `rows_${n}`, summary: 'all rows' }),
});
const count = defineTool({
  ...common,
  name: 'count',
  effect: 'read',
  input: z.object({ rows: z.string() }),
  execute: async ({ rows }, { artifacts }) => {
    const all = await artifacts.get(rows, z.array(z.json()));
    return all.length;
  },
});
const see = defineTool({
  ...common,
  name: 'see',
  effect: 'read',
  execute: () => screenshot(Buffer.from(PIXEL, 'base64'), { text: 'the screen' }),
});
const slow = defineTool({
  ...common,
  name: 'slow',
  effect: 'read',
  timeout: '20 ms',
  execute: async () => await new Promise<string>(() => undefined),
});
const lost = defineTool({
  ...common,
  name: 'lost',
  effect: 'read',
  retry: { attempts: 1 },
  execute: () => 1,
});
const silent = defineTool({
  ...common,
  name: 'silent',
  effect: 'keyed',
  retry: { attempts: 2 },
  execute: () => {
    throw new CallFault('unanswered', 'the bank did not answer');
  },
});
const hired = defineTool({
  ...common,
  name: 'hired',
  effect: 'once',
  approval: 'always',
  output: z.object({ id: z.string().transform((text) => Number(text)) }),
  execute: ({ n }) => ({ id: `${n}` }),
});
const ending = defineTool({
  ...common,
  name: 'ending',
  effect: 'read',
  ends: true,
  execute: ({ n }) => ({ total: n }),
});
const filed = defineTool({
  ...common,
  name: 'filed',
  effect: 'read',
  ends: true,
  output: z.object({ total: z.string().transform((text) => Number(text)) }),
  execute: ({ n }) => artifact({ total: `${n}` }, { name: 'the_total', summary: 'a sum' }),
});

const tools = [priced, written, state, reported, list, count, see, slow, lost, silent, hired];
const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools });
const typed = (tool: typeof ending | typeof filed): Agent =>
  defineAgent({
    name: 'typed',
    instructions: 'End.',
    tools: [tool],
    output: z.object({ total: z.number() }),
  });
const graph = defineGraph({
  name: 'mail',
  instructions: 'Write.',
  state: z.object({
    text: z.string(),
    price: z.union([z.object({ euros: z.number() }), z.string()]).optional(),
  }),
  messageTo: 'text',
  tools: [priced],
  nodes: ({ tool }) => ({
    keep: tool({ tool: priced, arguments: () => ({ n: 5 }), save: 'price' }),
  }),
}).wire({ start: 'keep', edges: { keep: { done: 'end', failed: 'end' } } });

interface Form {
  readonly agent?: Agent;
  readonly options: Omit<MemoryOptions, 'message'>;
  /** What the model or the caller reads of the result in the recording. */
  readonly reads: string;
  readonly isOfPerson?: true;
}

const oneCall = (name: string, args: object = { n: 1 }): Form['options'] => ({
  model: [replyCall(name, { ...args }), replyText('Done.')],
});

const FORMS: Readonly<Record<string, Form>> = {
  'a read with an output schema': { options: oneCall('priced'), reads: '{"euros":1}' },
  'a read whose output schema transforms': { options: oneCall('written', { n: 7 }), reads: '7' },
  'a result that `failed` has judged as good': { options: oneCall('state'), reads: '"ok"' },
  'a result that `failed` has judged as bad': {
    options: oneCall('state', { n: 0 }),
    reads: 'it is down',
  },
  'a result that reads like an error, under an output schema': {
    options: oneCall('reported'),
    reads: '{"error":"none in 1"}',
  },
  'an artifact with its name and summary, which a later call reads': {
    options: {
      model: [
        replyCall('list', { n: 2 }),
        replyCall('count', { rows: 'rows_2' }),
        replyText('Done.'),
      ],
    },
    reads: 'artifact "rows_2"',
  },
  'a text as an artifact with the default name': {
    options: oneCall('list', { n: 0 }),
    reads: 'artifact "list_result"',
  },
  'a screenshot': { options: oneCall('see'), reads: 'the screen' },
  'a read that timed out': { options: oneCall('slow'), reads: '"timeout"' },
  'a read whose worker was lost for the last time': {
    options: {
      ...oneCall('lost'),
      on: { call: { lost: Array.from({ length: 20 }, () => kill()) } },
    },
    reads: 'the worker was lost',
  },
  'a keyed call that was not answered in all attempts': {
    options: {
      ...oneCall('silent'),
      on: { request: { outcome_unknown: decision({ as: 'happened', result: 'by phone' }) } },
    },
    reads: 'by phone',
  },
  'a result of a person under an output schema that transforms': {
    options: { ...oneCall('hired'), on: { request: { hired: answer({ id: '9' }) } } },
    reads: '{"id":9}',
    isOfPerson: true,
  },
  'an approved call with an output schema that transforms': {
    options: { ...oneCall('hired'), on: { request: { hired: approve() } } },
    reads: '{"id":1}',
  },
  'a result that ends the turn': {
    agent: typed(ending),
    options: { model: [replyCall('ending', { n: 3 })] },
    reads: '{"total":3}',
  },
  'an artifact that ends the turn': {
    agent: typed(filed),
    options: { model: [replyCall('filed', { n: 3 })] },
    reads: '{"total":3}',
  },
  'a node with a tool': { agent: graph, options: {}, reads: '' },
};

async function record({ agent = desk, options }: Form): Promise<Recording> {
  return await playAndRecord(agent, { message: 'Go', ...options });
}

describe('a rerun gives a recorded result as it is', () => {
  test.each(Object.entries(FORMS))('%s', async (_name, form) => {
    const recording = await record(form);
    const [root] = recording.runs;
    expect(root?.messages.map(({ text }) => text).join('\n')).toContain(form.reads);
    const again = await rerun(recording, { agent: form.agent ?? desk });
    expect(again.divergence?.text).toBeUndefined();
    expect(again.recording.runs[0]?.messages.map(withoutTime)).toEqual(
      root?.messages.map(withoutTime),
    );
    expect(again.outcome).toMatchObject({ output: root?.outcome?.output ?? null });
    // Functions and schemas of tools are not pinned.
    if (form.agent === graph || form.isOfPerson === true) return;
    expect((await rerun(recording)).divergence?.text).toBeUndefined();
  });

  test('and its value is what the matchers see', async () => {
    const { effects } = await rerun(
      await record({ options: oneCall('list', { n: 2 }), reads: '' }),
    );
    expect(effects).toMatchObject([{ tool: 'list', result: ROWS }]);
    const failed = await rerun(await record({ options: oneCall('state', { n: 0 }), reads: '' }));
    expect(failed.effects).toMatchObject([{ tool: 'state', error: 'it is down' }]);
  });
});

test('the contract of the agent is applied again to a result that ends the turn', async () => {
  const recording = await record(
    FORMS['a result that ends the turn'] ?? { options: {}, reads: '' },
  );
  const strict = defineAgent({
    name: 'typed',
    instructions: 'End.',
    tools: [ending],
    output: z.object({ total: z.number().min(10) }),
  });
  const refused = await rerun(recording, { agent: strict });
  expect(JSON.stringify(refused.divergence?.actual)).toContain(
    'cannot be the output of this agent',
  );
  const wider = defineAgent({
    name: 'typed',
    instructions: 'End.',
    tools: [ending],
    output: z.object({ total: z.number(), currency: z.string().default('EUR') }),
  });
  const added = await rerun(recording, { agent: wider });
  expect(JSON.stringify(added.divergence?.actual)).toContain('currency');
});

test('verify gives an artifact as it did', async () => {
  const pay = defineTool({
    ...common,
    name: 'pay',
    effect: 'once',
    execute: () => 'paid',
    verify: () => ({ happened: true, result: artifact(ROWS, { name: 'statement' }) }),
  });
  const agent = defineAgent({ name: 'desk', instructions: 'Pay.', tools: [pay] });
  const recording = await record({
    agent,
    options: {
      ...oneCall('pay'),
      faults: [{ at: 'after-effect', call: 1, kill: true }],
    },
    reads: '',
  });
  const again = await rerun(recording, { agent });
  expect(again.divergence?.text).toBeUndefined();
  expect(again.transcript.messages.map(({ text }) => text).join('\n')).toContain(
    'artifact "statement"',
  );
});

/** The messages of both runs differ in their times alone. */
function withoutTime({ at: _at, ...rest }: { readonly at: number }): object {
  return rest;
}
