import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { rulesOn } from '../../src/agents/options.js';
import { predicateMisfit } from '../../src/core/definition/predicate-misfit.js';
import type { Rule } from '../../src/core/definition/rules.js';
import { defineAgent, defineConfig, defineTool } from '../../src/index.js';
import { mcpServer } from '../../src/tools.js';
import { likelyMeant } from '../../src/validation/near-names.js';
import { ruleFindings } from '../../src/validation/rule-names.js';

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  effect: 'keyed',
  input: z.object({
    order: z.string(),
    euros: z.number(),
    cents: z.coerce.number().optional(),
    kind: z.enum(['goods', 'fee']).optional(),
    items: z.array(z.object({ price: z.number() })).optional(),
    notes: z.record(z.string(), z.string()).optional(),
    to: z.union([z.object({ iban: z.string() }), z.object({ card: z.string() })]).optional(),
    when: z
      .string()
      .transform((text) => ({ day: text }))
      .optional(),
  }),
  execute: async () => 'done',
});
const refundFee = defineTool({
  name: 'refund_fee',
  description: 'Refunds a fee.',
  effect: 'keyed',
  input: z.looseObject({ euros: z.number() }),
  execute: async () => 'done',
});
const server = mcpServer({ name: 'shop', transport: 'stdio', command: 'shop' });
const base = { name: 'desk', instructions: 'Help.', model: 'm' };
const tools = [refund];

const over = (path: string): Rule => ({
  tool: 'refund',
  where: { op: 'over', path, value: 50 },
  then: 'ask',
});
const where = (given: Rule['where'] & object): Rule => ({
  tool: 'refund',
  where: given,
  then: 'ask',
});

test('a rule of an agent without tools says that there are none', () => {
  const rules = [{ tool: 'refund', then: 'ask' as const }];
  const define = () => defineAgent({ name: 'desk', instructions: 'x', model: 'm', rules });
  expect(define).toThrow('got "refund" (there are no tools);');
});

const WRONG: readonly (readonly [string, Rule, string])[] = [
  [
    'a tool',
    { tool: 'refnud', then: 'ask' },
    'rules[0].tool: expected the name of a tool that exists, got "refnud" (did you mean "refund"); correct it, or write a glob such as "refnud*" for tools to come',
  ],
  [
    'a tool like no other',
    { tool: 'pay', then: 'deny' },
    'rules[0].tool: expected the name of a tool that exists, got "pay" (the tools are refund);',
  ],
  [
    'an effect',
    { tool: 'refund', effect: 'once', then: 'ask' },
    'rules[0].effect: expected "keyed", the effect of tool "refund", got "once"; correct or remove it',
  ],
  [
    'a path',
    over('euro'),
    'rules[0].where.path: expected an argument of tool "refund", got "euro" (did you mean "euros"); correct it',
  ],
  ['a path in a list', over('items.0.prize'), '(did you mean "items.0.price")'],
  [
    'a path in a union',
    where({ op: 'eq', path: 'to.ibam', value: 'x' }),
    '(did you mean "to.iban")',
  ],
  ['a path in a text', over('order.total'), 'got "order.total" (it has none)'],
  [
    'a path in a condition',
    where({ any: [{ op: 'exists', path: 'euros' }, { not: { op: 'exists', path: 'ordre' } }] }),
    'rules[0].where.any[1].not.path: expected an argument',
  ],
  [
    'a comparison of numbers for a text',
    over('order'),
    'rules[0].where.op: expected "eq", "in", or "matches" for "order" of tool "refund", which is no number',
  ],
  [
    'a glob for a number',
    where({ op: 'matches', path: 'euros', value: '5*' }),
    'rules[0].where.op: expected a comparison of a number for "euros"',
  ],
  [
    'a value',
    where({ op: 'in', path: 'kind', value: ['goods', 'fees'] }),
    'rules[0].where.value: expected a value that "kind" of tool "refund" can have ("goods", "fee"), got "fees"',
  ],
  ['a type', where({ op: 'eq', path: 'euros', value: '50' }), 'can have (number), got "50"'],
];

describe('a rule that can apply to no call is an error', () => {
  test.each(WRONG)('because of %s', (_, rule, message) => {
    expect(() => defineAgent({ ...base, tools, rules: [rule] })).toThrow(message);
    expect(() => defineAgent({ ...base, tools, rules: [rule] })).toThrow(/^agent "desk": /);
    const agents = [defineAgent({ ...base, tools })];
    expect(() => defineConfig({ agents, rules: [rule] })).toThrow(message);
  });

  test('and each of them has a line', () => {
    const rules = [over('euro'), over('euros'), over('eurso')];
    expect(() => defineAgent({ ...base, tools, rules })).toThrow(/rules\[0\].*\n.*rules\[2\]/);
  });
});

describe('a rule that may apply to a call is not', () => {
  test.each<[string, Rule]>([
    ['a number', over('euros')],
    ['a converted number', over('cents')],
    ['an item of a list', over('items.3.price')],
    ['a record', where({ op: 'eq', path: 'notes.anything', value: 'x' })],
    ['one side of a union', where({ op: 'matches', path: 'to.card', value: '4*' })],
    ['a field of the converted value', where({ op: 'eq', path: 'when.day', value: 'x' })],
    ['the whole value', where({ op: 'exists', path: '' })],
    ['a glob', { ...over('euros'), tool: 'ref*' }],
    ['a tool of each agent', { tool: 'read_result', then: 'ask' }],
  ])('%s', (_, rule) => {
    expect(() => defineAgent({ ...base, tools, rules: [rule] })).not.toThrow();
  });

  test('if the tool takes any argument', () => {
    const rules = [{ ...over('bonus'), tool: 'refund_fee' }];
    expect(() => defineAgent({ ...base, tools: [refundFee], rules })).not.toThrow();
  });
});

describe('a rule is written ahead', () => {
  test('as a glob, which is a warning while no tool has such a name', () => {
    const agent = defineAgent({ ...base, tools, rules: [{ tool: 'delete_*', then: 'ask' }] });
    expect(rulesOn([agent], agent.rules).warnings).toEqual([
      'rules[0].tool: expected a glob that matches a tool, got "delete_*"; no tool has such a name now, so the rule applies to no call',
    ]);
  });

  test('with a path, which is a warning while no tool of the glob has it', () => {
    const agent = defineAgent({ ...base, tools, rules: [{ ...over('euro'), tool: 'ref*' }] });
    const [warning] = rulesOn([agent], agent.rules).warnings;
    expect(warning).toContain('(did you mean "euros")');
  });

  test('for a tool of an MCP server, which is unchecked while the server has listed none', () => {
    const rules: readonly Rule[] = [{ ...over('euros'), tool: 'shop__refund' }];
    const agent = defineAgent({ ...base, mcp: [server], rules });
    const { warnings, unchecked } = rulesOn([agent], agent.rules);
    expect(warnings).toEqual([]);
    expect(unchecked).toEqual([expect.stringContaining('"shop__refund" was not checked')]);
    const own = [{ tool: 'sohp__refund', then: 'ask' }] as const;
    expect(() => defineAgent({ ...base, mcp: [server], rules: own })).toThrow('rules[0].tool');
  });
});

describe('a tool of an MCP server, named without its server,', () => {
  const other = mcpServer({ name: 'bank', transport: 'stdio', command: 'bank' });
  const agent = (tool: string) => () =>
    defineAgent({ ...base, tools, mcp: [server, other], rules: [{ tool, then: 'ask' }] });

  test('is an error that shows the whole name, and no glob', () => {
    expect(agent('buy')).toThrow(
      'agent "desk": rules[0].tool: expected the name of a tool that exists, got "buy" (the tools are refund); MCP tools are named <server>__<tool>, such as "shop__buy" or "bank__buy"; correct it',
    );
    expect(agent('sohp__buy')).toThrow('such as "shop__buy"');
  });

  test.each(['buy*', 'shop_?', '?hop', 'shop-*', '?shop__*', 'c*x'])(
    'as in the glob %s that can match no tool, is an error',
    (tool) => {
      const message = /^agent "desk": rules\[0\]\.tool: expected a glob .* such as "shop__/;
      expect(agent(tool)).toThrow(message);
      const rules = [{ tool, then: 'ask' }] as const;
      const agents = [defineAgent({ ...base, tools, mcp: [server] })];
      expect(() => defineConfig({ agents, rules })).toThrow('rules[0].tool: expected a glob');
    },
  );

  test.each(['*buy', 'shop_*', 'b*y', 'ref*', '?hop__b?y', '*_*x'])(
    'may be meant by the glob %s',
    (tool) => {
      expect(agent(tool)).not.toThrow();
    },
  );

  test('has a name that a server has listed as the nearest', () => {
    const listed = { name: 'shop__buy', effect: 'once', parameters: {} } as const;
    const { errors } = ruleFindings([{ tool: 'buy', then: 'ask' }], {
      tools: [listed],
      servers: ['shop'],
    });
    expect(errors).toEqual([expect.stringContaining('(did you mean "shop__buy")')]);
    const glob = ruleFindings([{ tool: 'sell*', then: 'ask' }], {
      tools: [listed],
      servers: ['shop'],
    });
    expect(glob.errors).toEqual([expect.stringContaining('such as "shop__sell*"')]);
    const ahead = ruleFindings([{ tool: 'shop__sell*', then: 'ask' }], {
      tools: [listed],
      servers: ['shop'],
    });
    expect([ahead.errors.length, ahead.warnings.length]).toEqual([0, 1]);
  });

  test('is an error in a prompt too', () => {
    const prompts = { sell: { text: 'Sell.', tools: ['buy'] } };
    expect(() => defineAgent({ ...base, tools, mcp: [server], prompts })).toThrow(
      'MCP tools are named <server>__<tool>, such as "shop__buy"',
    );
    const right = { sell: { text: 'Sell.', tools: ['shop__buy'] } };
    expect(() => defineAgent({ ...base, tools, mcp: [server], prompts: right })).not.toThrow();
  });
});

test('a condition of a grant can be true of a call of its tool', () => {
  const tool = { name: 'refund', schemas: [refund.parameters] };
  const given = { op: 'under', path: 'euro', value: 50 } as const;
  expect(predicateMisfit(given, tool, 'grant.where')).toContain(
    'grant.where.path: expected an arg',
  );
  expect(predicateMisfit({ ...given, path: 'euros' }, tool, 'grant.where')).toBeNull();
});

describe('a model that is almost an entry of `models`', () => {
  const config = (model: string, entry: string) => () =>
    defineConfig({ agents: [defineAgent({ ...base, model })], models: { [entry]: {} } });

  test('is an error that names the entry', () => {
    expect(config('mian', 'main')).toThrow(
      'config: agent "desk": model: expected an entry of `models`, got "mian" (did you mean "main"); correct it, or add an entry "mian": {} for a model with this name',
    );
  });

  test('is an error that names the demo model, which has no entry', () => {
    expect(config('dmo', 'main')).toThrow(
      'config: agent "desk": model: expected a model, got "dmo" (did you mean "demo"); correct it, or add an entry "dmo": {} for a model with this name',
    );
    expect(config('dmo', 'dmo')).not.toThrow();
  });

  test('is an error among the fallbacks, too', () => {
    const agent = defineAgent({ ...base, model: ['main', 'demo', 'mian'] });
    expect(() => defineConfig({ agents: [agent], models: { main: {} } })).toThrow(
      'config: agent "desk": model[2]: expected an entry of `models`, got "mian" (did you mean "main")',
    );
  });

  test.each([
    ['gpt-4.1', 'gpt-4o'],
    ['qwen3', 'qwen2'],
    ['main', 'main'],
    ['demo', 'memo'],
    ['claude-sonnet', 'main'],
  ])('is not %s beside %s', (model, entry) => {
    expect(config(model, entry)).not.toThrow();
  });
});

test('two neighboring characters in the other order are one mistake', () => {
  expect(likelyMeant('mian', ['main', 'other'])).toBe('main');
  expect(likelyMeant('ab', ['xy'])).toBeUndefined();
});
