import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shownTools, withInvocations, answerQuestion } from '../../src/core/transcript/catalog.js';
import type { AgentDefinition } from '../../src/core/definition/definition.js';
import type { ToolDefinition } from '../../src/core/definition/tool-definition.js';
import { type JsonObject, canonicalJson, isObject, type Json } from '../../src/core/text/json.js';
import type { PromptMessage, ToolCall } from '../../src/core/transcript/messages.js';
import { fixedTokens, toPromptMessage } from '../../src/core/transcript/transcript.js';
import { readInvokedCall } from '../../src/tools/arguments/check-arguments.js';
import { composeAnswer } from '../../src/core/rules/documents.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import { callReply, begun, config, toolDefinition } from '../support/scripts.js';
import { getOpenBatch } from '../../src/core/state/turn.js';

const listed = (name: string, category: string, ...actions: string[]): ToolDefinition =>
  toolDefinition(name, 'read', { catalog: { summary: `About ${name}`, category, actions } });

const TOOLS = [
  listed('find_mail', 'mail', 'search', 'read'),
  listed('find_order', 'orders', 'search'),
  listed('list_orders', 'orders', 'list', 'read'),
  toolDefinition('read_result', 'read'),
  toolDefinition('send_mail', 'once', {
    ends: true,
    catalog: { summary: 'Sends a Letter', category: 'mail', actions: ['create'] },
  }),
];

const exposed = (tools: readonly ToolDefinition[]): AgentDefinition =>
  config({ tools, toolExposure: 'catalog' }).definition;

interface Listing {
  readonly tools: readonly { readonly name: string }[];
  readonly count: number;
  readonly hint: string;
}

/** Returns the answer of `discover_tools`; fails if the call is refused. */
function discover(asked: JsonObject, tools = TOOLS): Listing {
  const answer = answerQuestion({ tools }, 'discover_tools', asked);
  if (!answer.ok) throw new Error(answer.message);
  return answer.value as Listing;
}
const names = (asked: JsonObject): readonly string[] =>
  discover(asked).tools.map(({ name }) => name);

describe('discover_tools', () => {
  test('lists all tools of the author by name, with their effects', () => {
    const { tools, count, hint } = discover({});
    expect(count).toBe(4);
    expect(tools).toEqual([
      { name: 'find_mail', summary: 'About find_mail', category: 'mail', effect: 'read' },
      { name: 'find_order', summary: 'About find_order', category: 'orders', effect: 'read' },
      { name: 'list_orders', summary: 'About list_orders', category: 'orders', effect: 'read' },
      {
        name: 'send_mail',
        summary: 'Sends a Letter',
        category: 'mail',
        effect: 'once',
        ends: true,
      },
    ]);
    expect(hint).toContain('tool_schema');
  });

  test.each<[string, JsonObject, readonly string[]]>([
    ['one category', { categories: ['orders'] }, ['find_order', 'list_orders']],
    ['any of several actions', { actions: ['list', 'create'] }, ['list_orders', 'send_mail']],
    ['category and action', { categories: ['mail'], actions: ['search'] }, ['find_mail']],
    [
      'all three',
      { categories: ['mail', 'orders'], actions: ['read'], query: 'LIST' },
      ['list_orders'],
    ],
    ['a word of the name', { query: 'Find' }, ['find_mail', 'find_order']],
    ['a word of the summary', { query: 'letter' }, ['send_mail']],
    ['several words, in any order', { query: 'mail letter' }, ['send_mail']],
    ['another letter case', { categories: ['MAIL'] }, ['find_mail', 'send_mail']],
    [
      'a known value beside an unknown one',
      { categories: ['mail', 'nope'] },
      ['find_mail', 'send_mail'],
    ],
    [
      'empty filters as none',
      { categories: [], actions: null, query: '' },
      ['find_mail', 'find_order', 'list_orders', 'send_mail'],
    ],
    ['a text for a list of one', { categories: 'orders' }, ['find_order', 'list_orders']],
  ])('accepts %s', (_name, asked, expected) => {
    expect(names(asked)).toEqual(expected);
  });

  test('finds nothing if all values are unknown, and names them and the existing ones', () => {
    const { tools, count, hint } = discover({ categories: ['files'], actions: ['fly'] });
    expect([tools, count]).toEqual([[], 0]);
    expect(hint).toContain('Unknown category "files"; available: mail, orders.');
    expect(hint).toContain('Unknown action "fly"; available: create, list, read, search.');
  });

  test('refuses an unknown filter, and names the existing ones', () => {
    const answers = [{ category: 'mail' }, { actions: [7] }, { query: 7 }, { categories: {} }];
    for (const asked of answers) {
      expect(answerQuestion({ tools: TOOLS }, 'discover_tools', asked)).toMatchObject({
        ok: false,
        message: expect.stringMatching(/categories.*query/),
      });
    }
  });

  test('stays small, however many tools there are', () => {
    const many = Array.from({ length: 500 }, (_, index) =>
      toolDefinition(`tool_${index}_${'x'.repeat(50)}`, 'read', {
        catalog: {
          summary: 's'.repeat(200),
          category: `category ${index % 100}`,
          actions: ['read'],
        },
      }),
    );
    const { tools, count, hint } = discover({}, many);
    expect([tools.length, count]).toEqual([50, 500]);
    expect(hint).toContain('the first 50 of 500');
    expect(JSON.stringify({ tools, count, hint }).length).toBeLessThan(24_000);
  });

  test('filters as documented, whatever the arguments', () => {
    const value = fc.constantFrom('mail', 'Orders', 'search', 'read', 'nope', '');
    const asked = fc.record(
      {
        categories: fc.array(value),
        actions: fc.array(value),
        query: fc.constantFrom('', 'find', 'MAIL o', 'z'),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(asked, ({ categories = [], actions = [], query = '' }) => {
        const lower = (list: readonly string[]): readonly string[] =>
          list.map((one) => one.toLowerCase());
        const expected = TOOLS.filter(({ name, catalog }) => {
          if (catalog === undefined) return false;
          const text = `${name} ${catalog.summary}`.toLowerCase();
          return (
            (categories.length === 0 || lower(categories).includes(catalog.category)) &&
            (actions.length === 0 || catalog.actions.some((one) => lower(actions).includes(one))) &&
            lower(query.split(' ')).every((word) => text.includes(word))
          );
        });
        expect(names({ categories, actions, query })).toEqual(expected.map(({ name }) => name));
      }),
    );
    fc.assert(
      fc.property(fc.jsonValue().filter(isObject), (anything) => {
        const answer = answerQuestion({ tools: TOOLS }, 'discover_tools', anything as JsonObject);
        expect(JSON.stringify(answer).length).toBeLessThan(3_000);
      }),
    );
  });
});

describe('tool_schema', () => {
  test('describes a tool and its arguments, listed or not', () => {
    const { parameters } = TOOLS[0] ?? {};
    expect(answerQuestion({ tools: TOOLS }, 'tool_schema', { name: 'find_mail' })).toEqual({
      ok: true,
      value: { name: 'find_mail', description: 'find_mail', parameters, effect: 'read' },
    });
    expect(answerQuestion({ tools: TOOLS }, 'tool_schema', { name: 'read_result' }).ok).toBe(true);
    expect(answerQuestion({ tools: TOOLS }, 'tool_schema', {}).ok).toBe(false);
  });
});

describe('a prompt with a catalog', () => {
  test('begins with three tools and counts only their tokens', () => {
    const many = Array.from({ length: 100 }, (_, index) => listed(`tool_${index}`, 'c', 'read'));
    const all = config({ tools: many }).definition;
    expect(shownTools(exposed(many)).map(({ name }) => name)).toEqual([
      'discover_tools',
      'invoke_tool',
      'tool_schema',
    ]);
    expect(shownTools(all)).toHaveLength(100);
    expect(shownTools(exposed([]))).toEqual([]);
    expect(fixedTokens(exposed(many))).toBe(fixedTokens(exposed(many.slice(0, 1))));
    expect(fixedTokens(exposed(many))).toBeLessThan(fixedTokens(all) / 5);
  });

  const called = (value: Json, via?: 'catalog'): PromptMessage => {
    const call: ToolCall = {
      id: 'call_1_1_0',
      name: 'look',
      arguments: canonicalJson(value),
      digest: 'd',
    };
    return { role: 'assistant', text: '', calls: [{ ...call, ...(via && { via }) }] };
  };
  const callIn = ([message]: readonly PromptMessage[]): ToolCall => {
    const [call] = message?.role === 'assistant' ? (message.calls ?? []) : [];
    if (call === undefined) throw new Error('no call');
    return call;
  };

  test('shows a call in its original form, byte for byte', () => {
    const object = fc
      .dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
      .filter((value) => !JSON.stringify(value).includes('__proto__'));
    fc.assert(
      fc.property(object, (given) => {
        const asked = { tool: 'look', arguments: given } as JsonObject;
        const read = readInvokedCall(asked);
        if (!read.ok) throw new Error(read.problem.message);
        const recorded = toPromptMessage(called(read.value, 'catalog'));
        const once = callIn(withInvocations(exposed(TOOLS), [recorded]));
        expect(once.name).toBe('invoke_tool');
        expect(once.arguments).toBe(canonicalJson(asked));
        expect(withInvocations(exposed(TOOLS), [recorded])).toEqual([
          { ...recorded, calls: [once] },
        ]);
      }),
    );
  });

  test('does not change a call by its own name, or a prompt without a catalog', () => {
    const direct = [called({ a: 1 })];
    expect(withInvocations(exposed(TOOLS), direct)).toEqual(direct);
    const invoked = [called({ a: 1 }, 'catalog')];
    const { definition } = config();
    expect(callIn(withInvocations(definition, invoked)).name).toBe('look');
  });
});

describe('a call through invoke_tool', () => {
  test.each<[JsonObject, JsonObject]>([
    [{ tool: 'look', arguments: { at: 'x' } }, { at: 'x' }],
    [{ name: 'look', parameters: '{"at":"x"}' }, { at: 'x' }],
    [{ tool: 'look', name: 'look' }, {}],
    [{ tool: 'look', arguments: null, parameters: { at: 'x' } }, { at: 'x' }],
  ])('is read from %j', (given, value) => {
    expect(readInvokedCall(given)).toEqual({ ok: true, name: 'look', value });
  });

  test.each<[JsonObject, string]>([
    [{ tool: 'look', at: 'x' }, 'has no argument "at"'],
    [{ tool: 'create_user', name: 'Ada', arguments: {} }, 'has no argument "name"'],
    [{ tool: 'look', arguments: {}, parameters: { at: 'x' } }, 'has no argument "parameters"'],
    [{ arguments: {} }, 'expects the name of a tool'],
  ])('is refused if a part of it would be lost: %j', (given, message) => {
    expect(readInvokedCall(given)).toMatchObject({
      ok: false,
      problem: { message: expect.stringContaining(message) },
    });
  });
});

describe('calls of the catalog', () => {
  const replied = (
    tools: readonly ToolDefinition[],
    ...calls: readonly [string, unknown][]
  ): RunState =>
    reduce(begun(config({ tools, toolExposure: 'catalog' })), {
      type: 'model-replied',
      reply: callReply(...calls),
      at: 0,
    });
  const toolTexts = ({ transcript }: RunState): readonly string[] =>
    transcript.messages.flatMap(({ role, text }) => (role === 'tool' ? [text] : []));

  test('are answered at once, and do not count as tool calls or results of the turn', () => {
    const state = replied(TOOLS, ['discover_tools', {}], ['tool_schema', { name: 'find_mail' }]);
    expect(toolTexts(state)).toHaveLength(2);
    expect(state.turn).toMatchObject({
      phase: { type: 'deciding' },
      failedSteps: 0,
      spent: { steps: 1, toolCalls: 0 },
    });
    expect(composeAnswer(state, 'steps')).toBe(
      'Stopped: the limit "steps" was reached after 1 step.',
    );
  });

  test('in one message get answers of limited size', () => {
    const large = toolDefinition('large', 'read', {
      parameters: { type: 'object', description: 'x'.repeat(40_000) },
    });
    const question: [string, unknown] = ['tool_schema', { name: 'large' }];
    const texts = toolTexts(replied([large], ...Array.from({ length: 128 }, () => question)));
    expect(texts.slice(0, 2).every((text) => text.includes('xxx'))).toBe(true);
    expect(texts[2]).toMatch(/not_executed.*ask again in the next/);
    expect(texts.join('').length).toBeLessThan(120_000);
  });

  test('do not exist if all tools are shown', () => {
    const own = toolDefinition('discover_tools', 'read');
    const state = reduce(begun(config({ tools: [own] })), {
      type: 'model-replied',
      reply: callReply(['discover_tools', {}]),
      at: 0,
    });
    expect(getOpenBatch(state)?.results).toEqual([null]);
  });
});
