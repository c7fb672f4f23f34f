import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineConfig } from '../../src/config.js';
import { parseDuration } from '../../src/core/text/text.js';
import { ruleVerdict, type Rule } from '../../src/core/definition/rules.js';
import { defineAgent, defineTool, InputError } from '../../src/index.js';
import { defineGraph, planAndExecute } from '../../src/graphs.js';
import { mcpServer } from '../../src/tools.js';
import { askPerson } from '../../src/tools.js';

/** What a JavaScript author could write. */
const loosely = (define: unknown, options: object): unknown => {
  if (typeof define !== 'function') throw new Error('expected a function');
  return Reflect.apply(define, undefined, [options]);
};
const common = { name: 't', description: 'x', effect: 'keyed', input: z.object({}) };
const clientTool = (more: object) => loosely(defineTool, { ...common, ...more });
const tool = (more: object) => clientTool({ execute: () => '', ...more });
const agent = (more: object) => loosely(defineAgent, { name: 'a', instructions: 'x', ...more });
const server = (more: object) =>
  loosely(mcpServer, { name: 'm', transport: 'stdio', command: 'x', ...more });
const rule = (expires: unknown) => ({ tool: '*', then: 'ask', expires });
const confirm = (expires: unknown) =>
  loosely(defineGraph, {
    name: 'g',
    state: z.object({}),
    nodes: (kinds: { confirm: (options: object) => unknown }) => ({
      ask: kinds.confirm({ show: () => 'Yes?', expires }),
    }),
  });
const confirmed = (expires: unknown): unknown => {
  const graph = confirm(expires) as { wire: (wiring: object) => unknown };
  return graph.wire({ start: 'ask', edges: { ask: { yes: 'end', no: 'end', expired: 'end' } } });
};

const node = (timeout: unknown): unknown => {
  const graph = loosely(defineGraph, {
    name: 'g',
    state: z.object({}),
    nodes: (kinds: { run: (options: object) => unknown }) => ({
      work: kinds.run({ run: () => ({}), timeout }),
    }),
  }) as { wire: (wiring: object) => unknown };
  return graph.wire({ start: 'work', edges: { work: 'end' } });
};
const planned = (timeout: unknown) =>
  loosely(planAndExecute, { name: 'p', instructions: 'x', tools: [tool({})], timeout });

/** Each option that takes a duration: how it is given, and where the definition has its milliseconds. */
const OPTIONS: readonly (readonly [string, (given: unknown) => unknown, string])[] = [
  ['timeout of a tool', (timeout) => tool({ timeout }), 'timeoutMs'],
  ['heartbeat of a tool', (heartbeat) => tool({ heartbeat }), 'heartbeatMs'],
  ['undoWithin of a tool', (undoWithin) => tool({ undo: () => {}, undoWithin }), 'undoMs'],
  ['expires of a tool', (expires) => clientTool({ expires }), 'expiresMs'],
  ['expires of askPerson', (expires) => loosely(askPerson, { expires }), 'expiresMs'],
  [
    'timeout of retrieve',
    (timeout) => agent({ retrieve: { find: () => [], timeout } }),
    'retrieve.timeoutMs',
  ],
  [
    'timeout of remember',
    (timeout) => agent({ remember: { save: () => {}, timeout } }),
    'remember.timeoutMs',
  ],
  ['expires of a rule', (expires) => agent({ rules: [rule(expires)] }), 'rules[0].expires'],
  ['timeout of an MCP server', (timeout) => server({ timeout }), 'timeoutMs'],
  ['connectTimeout', (connectTimeout) => server({ connectTimeout }), 'connectMs'],
  ['timeout of a node', node, 'graph.definition.nodes[0].timeoutMs'],
  ['timeout of a plan', planned, 'graph.definition.nodes[3].timeoutMs'],
  ['expires of confirm', confirmed, 'graph.definition.nodes[0].expiresMs'],
];

describe.each(OPTIONS)('%s', (_option, define, field) => {
  test.each([
    [1, 1],
    ['1 second', 1_000],
    ['30 seconds', 30_000],
    ['1.5 minutes', 90_000],
    ['1 hour', 3_600_000],
    ['0.0166667 hours', 60_000],
  ])('takes %j', (given, ms) => {
    expect(define(given)).toHaveProperty(field, ms);
  });

  test.each([0, -1, 0.5, Number.NaN, '', '0 seconds', '2', '2x', '2 moons', '-1 days', null, true])(
    'refuses %j',
    (given) => {
      expect(() => define(given)).toThrow(InputError);
      expect(() => define(given)).toThrow(
        /expected a whole number of ms or words such as .*"2 days", got .*; at most/,
      );
    },
  );
});

test.each<readonly [string, number | null]>([
  ['90 s', 90_000],
  ['90s', 90_000],
  ['hour', 3_600_000],
  ['2 hours', 7_200_000],
  ['1 h 30 min', 5_400_000],
  ['1h30m', 5_400_000],
  ['1.5 d', 129_600_000],
  ['2 Days', 172_800_000],
  ['250 ms', 250],
  ['1 week', 604_800_000],
  ['h', null],
  ['30 min 1 h', null],
  ['1 h 1 h', null],
  ['1 h and 2 min', null],
  ['-1 h', null],
  ['1.2.3 h', null],
  ['1e3 s', null],
  ['', null],
  ['101 years', null],
  ['5300 weeks', null],
])('%j is read as people write it, by the one parser', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
  if (ms !== null && text !== 'hour')
    expect(clientTool({ expires: text })).toHaveProperty('expiresMs', ms);
});

test('words may have any number of digits up to the maximum', () => {
  expect(clientTool({ expires: '1000000 seconds' })).toHaveProperty('expiresMs', 1_000_000_000);
});

test('an option that refuses part of a millisecond, or too long a time, gives the reason', () => {
  const most = 'a whole number of ms or words such as "30 seconds" or "2 days"';
  expect(() => tool({ timeout: 1500.5 })).toThrow(`expected ${most}, got 1500.5; at most 24 days`);
  const digits = '9'.repeat(400);
  expect(() => clientTool({ expires: `${digits} weeks` })).toThrow(/at most 36500 days$/);
  const rules = [rule(1500.5)];
  expect(() => agent({ rules })).toThrow(/expected a whole number of ms or .* got 1500\.5/);
});

describe('the rules of a configuration and of a run', () => {
  const words: Rule = { tool: 'pay*', then: 'ask', expires: '2 days' };

  test('may say when a request expires in words', () => {
    expect(() => defineConfig({ agents: [], rules: [words] })).not.toThrow();
    const verdict = ruleVerdict([words], { tool: 'pay', effect: 'once', value: {} });
    expect(verdict).toHaveProperty('expires', 2 * 24 * 60 * 60_000);
  });
});
