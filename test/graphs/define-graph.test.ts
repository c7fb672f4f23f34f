import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, InputError } from '../../src/index.js';
import { cases, defineGraph, text } from '../../src/graphs.js';
import { nodeContext } from '../../src/testing.js';

const search = defineTool({
  name: 'search',
  description: 'Searches.',
  effect: 'read',
  input: z.object({ query: z.string() }),
  execute: async () => 'found',
});

/** Defines a graph as JavaScript could: with values that the types refuse. */
function define(options: object, wiring: object): unknown {
  const graph = defineGraph({ name: 'mail', state, ...options } as never);
  return graph.wire(wiring as never);
}

const state = z.object({
  text: z.string(),
  answer: z.string().optional(),
  urgent: z.boolean().default(false),
  constructor: z.string().optional(),
});

const mail = defineGraph({
  name: 'mail',
  state,
  messageTo: 'text',
  answerFrom: 'answer',
  perTurn: ['answer'],
  nodes: ({ run, route, agent, choose, confirm }) => ({
    // The compiler assumes that every object has a `constructor`, which is not a text.
    load: run({ run: async (s) => ({ text: s.text.trim() }) as never }),
    sort: choose({
      on: (s) => cases({ urgent: s.urgent.is(true), toString: s.text.matches('*!') }),
    }),
    ask: agent({ agent: 'desk', message: (s) => text`Answer: ${s.text}`, save: 'answer' }),
    send: confirm({ show: (s) => text`Send ${s.answer}?`, expires: '2 days' }),
    page: route({
      exits: ['paged', 'nobody'],
      run: async (s, { exit }) => exit(s.urgent ? 'paged' : 'nobody', { constructor: 'x' }),
    }),
  }),
}).wire({
  start: 'load',
  edges: {
    load: 'sort',
    sort: { urgent: 'page', toString: 'page', else: 'ask' },
    ask: { done: 'send', stopped: 'end', failed: 'end' },
    send: { yes: 'end', no: 'ask', expired: 'end' },
    page: { paged: 'ask', nobody: 'end' },
  },
});

describe('a graph', () => {
  test.each([
    [undefined, true],
    [() => 'Judge.', undefined],
  ])('joins the answers of nodes where its model reads them (%s)', (message, joins) => {
    const graph = defineGraph({
      name: 'judge',
      instructions: 'Judge.',
      state: z.object({ draft: z.string().default('') }),
      nodes: ({ agent, decide }) => ({
        write: agent({ agent: 'writer', message: () => 'Write.', save: 'draft' }),
        judge: decide({ output: z.object({ good: z.boolean() }), ...(message && { message }) }),
      }),
    }).wire({
      start: 'write',
      edges: { write: { done: 'judge', stopped: 'end', failed: 'end' }, judge: 'end' },
    });
    const { nodes, nodesJoin } = graph.graph.definition;
    expect(nodesJoin).toBe(joins);
    expect(nodes[1]).toMatchObject(message ? { message: 'Judge.' } : { kind: 'decide' });
  });

  test('is data, frozen', () => {
    expect(Object.isFrozen(mail.graph.definition.nodes)).toBe(true);
    expect(JSON.parse(JSON.stringify(mail.graph.definition))).toEqual({
      start: 'load',
      fields: ['text', 'answer', 'urgent', 'constructor'],
      initial: { urgent: false },
      perTurn: ['answer'],
      messageTo: 'text',
      answerFrom: 'answer',
      answerJoins: true,
      nodes: [
        {
          name: 'load',
          kind: 'run',
          timeoutMs: 120_000,
          attempts: 3,
          exits: [{ name: 'done', to: 'sort' }],
        },
        {
          name: 'sort',
          kind: 'choose',
          cases: [
            { exit: 'urgent', when: { op: 'eq', path: 'urgent', value: true } },
            { exit: 'toString', when: { op: 'matches', path: 'text', value: '*!' } },
          ],
          exits: [
            { name: 'urgent', to: 'page' },
            { name: 'toString', to: 'page' },
            { name: 'else', to: 'ask' },
          ],
        },
        {
          name: 'ask',
          kind: 'agent',
          agent: 'desk',
          message: { $text: ['Answer: ', { $path: 'text' }] },
          save: 'answer',
          exits: [
            { name: 'done', to: 'send' },
            { name: 'stopped', to: 'end' },
            { name: 'failed', to: 'end' },
          ],
        },
        {
          name: 'send',
          kind: 'confirm',
          show: { $text: ['Send ', { $path: 'answer' }, '?'] },
          expiresMs: 172_800_000,
          exits: [
            { name: 'yes', to: 'end' },
            { name: 'no', to: 'ask' },
            { name: 'expired', to: 'end' },
          ],
        },
        {
          name: 'page',
          kind: 'route',
          timeoutMs: 120_000,
          attempts: 3,
          exits: [
            { name: 'paged', to: 'ask' },
            { name: 'nobody', to: 'end' },
          ],
        },
      ],
    });
  });

  test('has tools, a decision, and each', () => {
    const graph = defineGraph({
      name: 'think',
      state,
      instructions: 'Decide.',
      tools: [search],
      nodes: ({ decide, tool, each }) => ({
        think: decide({ tools: ['search'], save: 'answer' }),
        search: tool({ tool: 'search' }),
        all: each({
          over: (s) => s.text as never,
          tool: search,
          arguments: (_, item) => ({ query: (item as unknown as { id: never }).id }),
        }),
      }),
    }).wire({
      start: 'think',
      edges: {
        think: { search: 'search', text: 'all' },
        search: { done: 'think', failed: 'think' },
        all: 'end',
      },
    });
    expect(graph.tools.names).toEqual(['search']);
    expect(graph.graph.definition.nodes[2]).toMatchObject({
      over: { $path: 'text' },
      atOnce: 5,
      body: { kind: 'tool', tool: 'search', arguments: { query: { $item: 'id' } } },
    });
  });
});

describe('a function of a node', () => {
  const call = async (run: (s: never, context: never) => unknown, recorded: object) => {
    const graph = defineGraph({
      name: 'mail',
      state,
      nodes: (kinds) => ({ load: kinds.run({ run: run as never }) }),
    }).wire({ start: 'load', edges: { load: 'end' } });
    return await graph.graph.functions.get('load')?.({ state: recorded as never }, nodeContext());
  };

  test('receives the parsed state and returns a patch', async () => {
    const run = async (s: object) => ({ text: JSON.stringify(s) });
    expect(await call(run, { answer: 'a' })).toEqual({
      patch: { text: '{"answer":"a","urgent":false}' },
    });
  });

  test('of a route returns the exit', async () => {
    const page = mail.graph.functions.get('page');
    expect(await page?.({ state: { urgent: true } }, nodeContext())).toEqual({
      exit: 'paged',
      patch: { constructor: 'x' },
    });
  });

  const cycle: { text?: unknown } = {};
  cycle.text = cycle;
  test.each<[unknown, string]>([
    [
      { tex: 'a' },
      'graph "mail": node "load" returned field "tex", which the state does not have; its fields are ' +
        'text, answer, urgent, constructor; did you mean "text"?',
    ],
    [{ text: 7 }, 'graph "mail": node "load" returned field "text": expected string, got 7'],
    [
      { valueOf: 'a' },
      'graph "mail": node "load" returned field "valueOf", which the state does not',
    ],
    ['text', 'graph "mail": node "load": expected a patch such as { field: value }, got "text"'],
    [[], 'graph "mail": node "load": expected a patch such as { field: value }, got []'],
    [cycle, 'graph "mail": node "load" returned field "text": expected string'],
  ])('is refused if it returns %j', async (returned, message) => {
    await expect(call(() => returned, {})).rejects.toThrow(message);
  });

  test('gets an error for a required field without a value', async () => {
    await expect(call(async (s: { text: string }) => ({ text: s.text }), {})).rejects.toThrow(
      'graph "mail": node "load": field "text" has no value yet; fill it in a node before this one',
    );
  });
});

type K = Parameters<Parameters<typeof defineGraph<typeof state, never>>[0]['nodes']>[0];
const nodes = (make: (kinds: K) => object): object => ({ nodes: make });
const idle = { run: async () => ({}) };

describe('a definition is refused', () => {
  test.each<[string, object, object]>([
    [
      'graph "mail": node "ask": exit "stopped" leads nowhere; wire it to a node or to "end"',
      nodes((k) => ({ ask: k.agent({ agent: 'desk', message: () => 'x' }) })),
      { start: 'ask', edges: { ask: { done: 'end', failed: 'end' } } },
    ],
    [
      'graph "mail": node "b" is never reached from "a"; wire an exit to it or remove it',
      nodes((k) => ({ a: k.run(idle), b: k.run(idle) })),
      { start: 'a', edges: { a: 'end', b: 'end' } },
    ],
    [
      'graph "mail": node "a": the cycle a → b → a may never end; give one of its nodes `maxVisits` and wire its exit "capped"',
      nodes((k) => ({ a: k.run(idle), b: k.run(idle) })),
      { start: 'a', edges: { a: 'b', b: 'a' } },
    ],
    [
      'graph "mail": node "a": maxVisits is 3, but exit "capped" leads nowhere; wire it to a node or to "end"',
      nodes((k) => ({ a: k.run({ ...idle, maxVisits: 3 }) })),
      { start: 'a', edges: { a: 'a' } },
    ],
    [
      'graph "mail": node "a": exit "expired" is never taken; give the node `expires`, such as "2 days", or remove the exit',
      nodes((k) => ({ a: k.confirm({ show: () => 'x' }) })),
      { start: 'a', edges: { a: { yes: 'end', no: 'end', expired: 'end' } } },
    ],
    [
      'graph "mail": node "a": exit "capped" is never taken; give the node `maxVisits` or remove it',
      nodes((k) => ({ a: k.run(idle) })),
      { start: 'a', edges: { a: { done: 'end', capped: 'end' } } },
    ],
    [
      'graph "mail": node "a": exit "done": unknown node "toString"; expected one of a, end',
      nodes((k) => ({ a: k.run(idle) })),
      { start: 'a', edges: { a: 'toString' } },
    ],
    [
      'graph "mail": start: unknown node "lod", did you mean "load"?; expected one of load',
      nodes((k) => ({ load: k.run(idle) })),
      { start: 'lod', edges: { load: 'end' } },
    ],
    [
      'graph "mail": nodes: expected a name of letters, digits, "_", and "-" that begins with a letter, has at most 40 characters, and is not "end", got "end"',
      nodes((k) => ({ end: k.run(idle) })),
      { start: 'end', edges: {} },
    ],
    [
      'graph "mail": node "a": expected different exits, got "x" twice; rename one',
      nodes((k) => ({ a: k.route({ exits: ['x', 'x'], run: async (_, c) => c.exit('x') }) })),
      { start: 'a', edges: {} },
    ],
    [
      'graph "mail": nodes: expected 1 to 200 nodes, got 201; move some of them to a graph of their own',
      nodes((k) =>
        Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`n${i}`, k.run(idle)])),
      ),
      { start: 'n0', edges: {} },
    ],
    [
      'graph "mail": node "a": the graph has no tool "serch", did you mean "search"?; its tools are search',
      { ...nodes((k) => ({ a: k.tool({ tool: 'serch' }) })), tools: [search] },
      { start: 'a', edges: { a: 'end' } },
    ],
    [
      'graph "mail": node "a": no exit "search" of a decide node leads here; give it `arguments`, or wire that exit to this node',
      { ...nodes((k) => ({ a: k.tool({ tool: 'search' }) })), tools: [search] },
      { start: 'a', edges: { a: 'end' } },
    ],
    [
      'graph "mail": node "a": expected `tools` of the graph, got none; add the tools to choose from',
      nodes((k) => ({ a: k.decide({}) })),
      { start: 'a', edges: {} },
    ],
    [
      'graph "mail": node "a": expected `instructions` of the graph, got none; specify what to decide',
      { ...nodes((k) => ({ a: k.decide({}) })), tools: [search] },
      { start: 'a', edges: {} },
    ],
    [
      'graph "mail": node "a": message: path "text": expected a place, got a conversion to a text or number; write text`… ${s.text} …` with the tag `text`',
      nodes((k) => ({
        a: k.agent({ agent: 'b', message: (s) => `A ${s.text as unknown as string}` }),
      })),
      { start: 'a', edges: {} },
    ],
    [
      'graph "mail": node "a": message reads field "txtx", which the state does not have; its fields are text, answer, urgent, constructor',
      nodes((k) => ({
        a: k.agent({ agent: 'b', message: (s) => (s as unknown as { txtx: never }).txtx }),
      })),
      { start: 'a', edges: {} },
    ],
    [
      'graph "mail": node "a": save names field "x", which the state does not have; its fields are text, answer, urgent, constructor',
      nodes((k) => ({ a: k.decide({ save: 'x' as never }) })),
      { start: 'a', edges: {} },
    ],
    [
      'graph "mail": messageTo names field "x", which the state does not have; its fields are text, answer, urgent, constructor',
      { ...nodes((k) => ({ a: k.run(idle) })), messageTo: 'x' },
      { start: 'a', edges: { a: 'end' } },
    ],
    [
      'graph "mail": node "a": input.n: expected JSON, got the big integer 1; convert it first',
      nodes((k) => ({ a: k.graph({ graph: 'b', input: () => ({ n: 1n as never }) }) })),
      { start: 'a', edges: {} },
    ],
  ])('%s', (message, options, wiring) => {
    expect(() => define(options, wiring)).toThrow(new InputError(message));
  });

  const rubbish = [undefined, null, 7, 'x', [], {}, () => 1, Symbol('x'), 1n, Number.NaN];
  test.each(rubbish)('with %s in any place, and never with a TypeError', (value) => {
    const one = nodes((k) => ({ a: k.run(idle) }));
    const good = { start: 'a', edges: { a: 'end' } };
    const attempts: (() => unknown)[] = [
      () => defineGraph(value as never),
      ...['state', 'nodes'].map((key) => () => define({ ...one, [key]: value }, good)),
      () =>
        define(
          nodes(() => value as never),
          good,
        ),
      () =>
        define(
          nodes(() => ({ a: value })),
          good,
        ),
      () =>
        define(
          nodes((k) => ({ a: k.run(value as never) })),
          good,
        ),
      () =>
        define(
          nodes((k) => ({ a: k.choose({ on: () => value as never }) })),
          good,
        ),
      () => define(one, { ...good, start: value }),
      () => define(one, { ...good, edges: value }),
      () => define(one, { ...good, edges: { a: value } }),
      () => define(one, { ...good, edges: { a: { done: value } } }),
    ];
    for (const attempt of attempts) {
      expect(attempt).toThrow(/^graph\b/);
      expect(attempt).not.toThrow(TypeError);
    }
  });
});

test('a field for refusals is reset by each turn, and must be one of the state', () => {
  const refusing = (refusedFrom: 'no') =>
    defineGraph({
      name: 'desk',
      state: z.object({ no: z.boolean().default(false) }),
      refusedFrom,
      nodes: ({ run }) => ({ only: run({ run: async () => ({}) }) }),
    });
  const { graph } = refusing('no').wire({ start: 'only', edges: { only: 'end' } });
  expect(graph.definition).toMatchObject({ refusedFrom: 'no', perTurn: ['no'] });
  // @ts-expect-error -- it is no field
  expect(() => refusing('yes')).toThrow('graph "desk": refusedFrom names');
});
