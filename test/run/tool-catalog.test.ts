import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import type { JsonObject } from '../../src/core/text/json.js';
import type { TranscriptPage } from '../../src/core/state/status.js';
import { openAiModel } from '../../src/models/openai/model.js';
import type { Answer } from '../../src/testing/script.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { replyCalls, replyText, type Reply } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { ToolOptions } from '../../src/tools/tool-options.js';
import { expectStablePrefix } from '../support/prompts.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;
let keys: string[] = [];
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => await rig.close());
beforeEach(() => {
  keys = [];
});

const order = z.object({ order: z.number().int().describe('its number') });
type Rest = Partial<ToolOptions<typeof order, z.ZodType>>;
const tool = (name: string, effect: Effect, rest: Rest = {}) =>
  defineTool({
    name,
    description: `Does ${name}. And there is more to say of it, which only its schema tells.`,
    input: order,
    effect,
    execute: ({ order: number }, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return `${name} of ${number}`;
    },
    ...rest,
  });

const entry = (category: string, ...actions: string[]) => ({
  catalog: { summary: `About ${category}`, category, actions },
});
const tools = [
  tool('look_up', 'read', entry('orders', 'read', 'search')),
  tool('refund', 'keyed', {
    ...entry('orders', 'write'),
    describe: (input) => `refund ${input.order}`,
  }),
  tool('finish', 'keyed', { ...entry('talk', 'write'), ends: true }),
  tool('plain', 'read'),
];

type Options = Omit<Parameters<typeof defineAgent>[0], 'name' | 'model' | 'instructions'>;
const agent = (options: Options = {}): Agent =>
  defineAgent({
    name: 'a',
    instructions: 'help',
    model: 'm',
    tools,
    toolExposure: 'catalog',
    ...options,
  });

/** Runs an agent over a script on a socket. */
async function run(of: Agent, steps: readonly Reply[] | Answer): Promise<Ended> {
  await rig.stopWorkers();
  await stub?.close();
  stub = await startStub();
  if (typeof steps === 'function') stub.answer(steps);
  else stub.script(...steps);
  await rig.worker([of], { models: { m: openAiModel({ baseUrl: stub.baseUrl }) } });
  const ended = await rig.run({ agent: 'a', message: 'order 7, please' });
  stub.assertConsumed();
  return ended;
}
afterAll(async () => await stub.close());

const asks = (name: string, given: JsonObject | string): Reply =>
  replyCalls([{ name, arguments: given }]);
const invoke = (name: string, given: JsonObject | string): Reply =>
  asks('invoke_tool', { tool: name, arguments: given });

const shown = ({ body }: StubRequest): readonly string[] =>
  (body['tools'] as { function: { name: string } }[]).map((each) => each.function.name);
const results = ({ projection }: Ended): readonly string[] =>
  projection.messages.flatMap((message) => (message.role === 'tool' ? [message.text] : []));
const result = (ended: Ended, nth: number): unknown => JSON.parse(results(ended)[nth] ?? 'null');
const scheduled = ({ history }: Ended, type: string): number =>
  (history.events ?? []).filter(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === type,
  ).length;

describe('an agent with a catalog', () => {
  test('finds a tool, reads its schema, calls it, and ends with another', async () => {
    const ended = await run(agent(), [
      asks('discover_tools', { actions: ['write'] }),
      asks('tool_schema', { name: 'refund' }),
      invoke('refund', { order: 7 }),
      // The same again, with its arguments as text: the guard against repeats recognizes the real
      // call.
      invoke('refund', '{"order": 7}'),
      invoke('finish', { order: 7 }),
    ]);
    const { outcome, projection, handle } = ended;
    expect(outcome).toMatchObject({
      status: 'completed',
      reason: 'tool',
      answer: 'finish of 7',
      steps: 5,
      toolCalls: 2,
    });
    expect(result(ended, 0)).toMatchObject({
      tools: [
        { name: 'finish', summary: 'About talk', category: 'talk', effect: 'keyed', ends: true },
        { name: 'refund', summary: 'About orders', category: 'orders', effect: 'keyed' },
      ],
      count: 2,
    });
    expect(result(ended, 1)).toMatchObject({
      name: 'refund',
      effect: 'keyed',
      parameters: { properties: { order: { type: 'integer', description: 'its number' } } },
    });
    expect(results(ended)[3]).toMatch(/identical to .* in this turn.*refund of 7/s);
    expect(new Set(keys).size).toBe(2);
    expect(scheduled(ended, 'runTool')).toBe(2);

    for (const request of stub.requests) {
      expect(shown(request)).toEqual(['discover_tools', 'invoke_tool', 'tool_schema']);
    }
    expectStablePrefix(stub.requests);
    // The model reads its own call; people read the real one.
    const last = stub.requests.at(-1)?.messages.filter(({ role }) => role === 'assistant') ?? [];
    expect(JSON.stringify(last[2])).toContain(
      '"name":"invoke_tool","arguments":"{\\"arguments\\":{\\"order\\":7},\\"tool\\":\\"refund\\"}"',
    );
    expect(last[2]).toEqual({ ...last[3], tool_calls: expect.anything() });
    const page = await handle.query<TranscriptPage>('transcript');
    const calls = page.messages.flatMap((one) =>
      one.role === 'assistant' ? (one.calls ?? []) : [],
    );
    expect(calls.map(({ name }) => name)).toEqual([
      'discover_tools',
      'tool_schema',
      'refund',
      'refund',
      'finish',
    ]);
    expect(calls[2]).toMatchObject({
      arguments: '{"order":7}',
      summary: 'refund 7',
      via: 'catalog',
    });
    expect(projection.state?.transcript.messages).toHaveLength(11);
  });

  test('gets an error for an invalid call, and continues', async () => {
    const ended = await run(agent(), [
      asks('tool_schema', { name: 'refnd' }),
      invoke('refund', { order: 'seven' }),
      invoke('refnd', { order: 7 }),
      asks('invoke_tool', { tool: 'refund', order: 7 }),
      asks('invoke_tool', { arguments: { order: 7 } }),
      invoke('refund', '{"order": 7'),
      invoke('tool_schema', { name: 'refund' }),
      asks('discover_tools', { kind: 'orders' }),
      asks('refnd', { order: 7 }),
      // Its own name works as well: the model knows it by now.
      asks('refund', { order: 7 }),
      replyText('done'),
    ]);
    expect(ended.outcome).toMatchObject({ status: 'completed', reason: 'answer', toolCalls: 1 });
    const texts = results(ended);
    expect(texts[0]).toMatch(/unknown_tool.*\\"refnd\\".*Tools: refund,.*discover_tools/);
    expect(texts[1]).toMatch(/invalid_arguments.*refund are not valid.*order/s);
    expect(texts[2]).toMatch(/unknown_tool.*refund,/);
    expect(texts[3]).toMatch(/has no argument \\"order\\".*belong in `arguments`/);
    expect(texts[4]).toMatch(/expects the name of a tool/);
    expect(texts[5]).toMatch(/invalid_json.*In `arguments` of invoke_tool/);
    expect(texts[6]).toMatch(/Call tool_schema by itself/);
    expect(texts[7]).toMatch(/Unknown filter \\"kind\\"; available: categories, actions, query/);
    expect(texts[8]).toMatch(/unknown_tool/);
    expect(texts[9]).toBe('refund of 7');
    expect(keys).toHaveLength(1);
    expectStablePrefix(stub.requests);
  });

  test('filters as requested, in one message or in several', async () => {
    const ended = await run(agent(), [
      replyCalls([
        { name: 'discover_tools', arguments: { categories: ['orders', 'other'] } },
        { name: 'discover_tools', arguments: { categories: ['orders'], actions: ['search'] } },
        { name: 'discover_tools', arguments: { categories: ['flights'] } },
        { name: 'discover_tools', arguments: { query: 'PLAIN' } },
      ]),
      replyText('done'),
    ]);
    const names = [0, 1, 2, 3].map((nth) => {
      const { tools: rows } = result(ended, nth) as { tools: { name: string }[] };
      return rows.map(({ name }) => name);
    });
    expect(names).toEqual([['look_up', 'plain', 'refund'], ['look_up'], [], ['plain']]);
    expect(results(ended)[2]).toContain(
      'Unknown category \\"flights\\"; available: orders, other, talk.',
    );
    expect(ended.outcome).toMatchObject({ steps: 2, toolCalls: 0 });
    expect(scheduled(ended, 'runTool')).toBe(0);
  });

  test('makes no progress if it repeats the same query', async () => {
    const again = asks('discover_tools', {});
    const ended = await run(agent(), [again, again, again, replyText('so far')]);
    expect(ended.outcome).toMatchObject({
      status: 'stopped',
      reason: 'no_progress',
      answer: 'so far',
    });
    expect(shown(stub.requests.at(-1) as StubRequest)).toHaveLength(3);
    expect(stub.requests.at(-1)?.body['tool_choice']).toBe('none');
    expectStablePrefix(stub.requests);
  });

  test('may decide by schema', async () => {
    const decide = (action: string, given: JsonObject | string): Reply =>
      replyText(JSON.stringify({ decision: { action, arguments: given } }));
    const ended = await run(agent({ decide: 'schema' }), [
      decide('discover_tools', { categories: null, actions: null, query: 'refund' }),
      decide('invoke_tool', '{"tool":"refund","arguments":{"order":7}}'),
      replyText('{"decision": {"action": "answer", "answer": "paid back"}}'),
    ]);
    expect(ended.outcome).toMatchObject({ status: 'completed', answer: 'paid back', toolCalls: 1 });
    expect(result(ended, 0)).toMatchObject({ count: 1 });
    const [first] = stub.requests;
    expect(first?.text).not.toContain('which only its schema tells');
    expectStablePrefix(stub.requests);
  });

  test('continues unchanged in new segments', async () => {
    const steps = Array.from({ length: 6 }, (_, index) => invoke('look_up', { order: index }));
    await rig.stopWorkers();
    await stub.close();
    stub = await startStub();
    stub.script(...steps, replyText('done'));
    const models = { m: openAiModel({ baseUrl: stub.baseUrl }) };
    await rig.worker([agent()], {
      models,
      segment: { steps: 2, bytes: 1_000_000 },
      transcriptCacheBytes: 1,
    });
    const { outcome } = await rig.run({ agent: 'a', message: 'many' });
    expect(outcome).toMatchObject({ status: 'completed', toolCalls: 6, segments: 4 });
    expectStablePrefix(stub.requests);
  });
});

describe('a catalog in combination with other features', () => {
  test('a fork begins with the same bytes', async () => {
    const { handle } = await run(agent(), [invoke('look_up', { order: 1 }), replyText('found')]);
    const [, second] = stub.requests;
    stub.script(replyText('again'));
    await rig.run({ agent: 'a', message: 'and now?', fork: { run: handle.workflowId } });
    const forked = stub.requests.at(-1);
    expect(JSON.stringify(forked?.messages)).toContain(
      JSON.stringify(second?.messages).slice(0, -1),
    );
    expect(forked?.messages).toHaveLength(6);
  });

  test('a truncated text can be read on through it', async () => {
    const text = `${'x'.repeat(70_000)} in the middle ${'x'.repeat(70_000)}`;
    const long = tool('look_up', 'read', { execute: () => text });
    const ended = await run(agent({ tools: [long] }), ({ messages, assistantMessages }) => {
      if (assistantMessages === 0) return invoke('look_up', { order: 1 });
      if (assistantMessages === 2) return replyText('done');
      const [, ref = ''] =
        /read_result\(\{"ref":"(\w+)"/.exec(String(messages.at(-1)?.content)) ?? [];
      return invoke('read_result', { ref, offset: 69_990 });
    });
    expect(results(ended)[0]).not.toContain('in the middle');
    expect(results(ended)[1]).toContain('in the middle');
    expect(ended.outcome).toMatchObject({ status: 'completed', toolCalls: 2 });
  });
});

describe('the size of a prompt', () => {
  test('is a small part of what seventeen schemas take', async () => {
    const many = Array.from({ length: 17 }, (_, index) =>
      defineTool({
        name: `tool_${index}`,
        description:
          'Finds the entries of one customer that match all of the filters, newest first. Use it ' +
          'before you change anything; what it does not find does not exist for this customer.',
        input: z.object({
          customer: z
            .string()
            .describe('the id of the customer, as the list of customers tells it'),
          from: z.string().optional().describe('ISO 8601 date; entries before it are left out'),
          to: z.string().optional().describe('ISO 8601 date; entries after it are left out'),
          state: z.enum(['open', 'paid', 'cancelled', 'disputed']).optional(),
          limit: z.number().int().min(1).max(200).describe('how many at most, 1 to 200'),
        }),
        effect: 'read',
        execute: () => 'none',
      }),
    );
    const sizes: number[] = [];
    for (const toolExposure of ['all', 'catalog'] as const) {
      await run(agent({ tools: many, toolExposure }), [replyText('done')]);
      const bytes = JSON.stringify(stub.requests[0]?.body['tools']).length;
      sizes.push(bytes);
    }
    const [all = 0, catalog = 0] = sizes;
    expect(catalog).toBeLessThan(all / 10);
  });
});
