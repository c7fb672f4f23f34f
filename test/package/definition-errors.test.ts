import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as graphs from '../../src/graphs.js';
import * as perdure from '../../src/index.js';
import * as output from '../../src/output.js';
import * as tools from '../../src/tools.js';
import * as worker from '../../src/worker.js';

const { InputError } = perdure;
const functions: Readonly<Record<string, unknown>> = {
  ...perdure,
  ...graphs,
  ...output,
  ...tools,
  ...worker,
};

/** Calls a public function as a JavaScript author could. */
function call(name: string, ...given: readonly unknown[]): unknown {
  const definition = functions[name];
  if (typeof definition !== 'function') throw new Error(`${name} is not exported`);
  return Reflect.apply(definition, undefined, given);
}

/** What an author may take for an agent. */
const UNWIRED = graphs.defineGraph({
  name: 'mail',
  state: z.object({ text: z.string() }),
  nodes: ({ run }) => ({ load: run({ run: async () => await Promise.resolve({}) }) }),
});
const WIRE =
  'expected an agent, got a graph whose exits are not wired; call .wire({ start, edges }) on it';
const LOOK = perdure.defineTool({
  name: 'look',
  description: 'Looks.',
  effect: 'read',
  input: z.object({}),
  execute: async () => await Promise.resolve({}),
});

/** Bad arguments of each function that takes a definition, with the beginning of the message. */
const CASES: readonly (readonly [string, readonly unknown[], string])[] = [
  ['defineAgent', [undefined], 'agent: '],
  ['defineAgent', [{ name: 'a', instructions: 'x', modle: 'm' }], 'agent "a": "modle" is not'],
  ['defineAgent', [{ name: 'a', instructions: 'x', output: 7 }], 'agent "a": output: expected'],
  ['defineAgent', [{ name: 'a', instructions: 'x', rules: 7 }], 'agent "a": rules: expected'],
  ['defineAgent', [{ name: 'a', instructions: 'x', limits: 7 }], 'agent "a": limits: expected'],
  ['defineTool', [{ name: 'a b' }], 'tool "a b":'],
  ['defineGraph', [{ name: 'g' }], 'graph "g":'],
  [
    'planAndExecute',
    [{ name: 'p', instructions: 'x', tools: [], expires: 1 }],
    'planAndExecute "p": "expires" is not',
  ],
  ['planAndExecute', [undefined], 'planAndExecute'],
  ['cases', [undefined], 'cases: expected'],
  ['defineConfig', [{ agents: [UNWIRED] }], `config: agents[0]: ${WIRE}`],
  [
    'defineConfig',
    [{ agents: [LOOK] }],
    'config: agents[0]: expected an agent, got a tool; give it to an agent: defineAgent({ tools: […] })',
  ],
  [
    'defineConfig',
    [{ agents: [z.object({})] }],
    'config: agents[0]: expected an agent, got a zod schema of type "object"; give it to an agent: defineAgent({ output: … })',
  ],
  ['defineConfig', [{ agents: [() => 7] }], 'config: agents[0]: expected an agent, got a function'],
  [
    'defineAgent',
    [{ name: 'a', instructions: 'x', agents: [UNWIRED] }],
    `agent "a": agents[0].agent: ${WIRE}`,
  ],
  [
    'defineAgent',
    [{ name: 'a', instructions: 'x', agents: [{ agent: LOOK }] }],
    'agent "a": agents[0].agent: expected an agent, got a tool',
  ],
  [
    'defineGraph',
    [{ name: 'g', state: z.object({ a: z.string() }), agents: [UNWIRED], nodes: () => ({}) }],
    `graph "g": agents[0]: ${WIRE}`,
  ],
  ['defineConfig', [{ agents: [], taskQueue: '' }], 'config: taskQueue: expected the name of'],
  ['defineConfig', [{ agents: [7] }], 'config: agents[0]: expected an agent'],
  [
    'defineConfig',
    [{ agents: [], encryption: { kyes: {} } }],
    'encryption: "kyes" is not an option; did you mean keys?',
  ],
  ['defineConfig', [{ agents: [], secrets: 'KEY' }], 'config: secrets: expected a list'],
  ['mcpServer', [{ name: 'm', transport: 'tcp' }], 'MCP server "m": transport: expected'],
  ['template', [7], 'template: expected'],
  ['template', ['{{a}}', { arg: ['a'] }], 'template: "arg" is not an option; did you mean args?'],
  ['tags', [undefined], 'tags: missing, expected'],
  ['tags', [{ fence: ['ts'] }], 'tags: "fence" is not an option; did you mean fences?'],
  ['tags', [{ xml: [{ name: 'a', need: true }] }], 'tags: xml[0]: '],
  ['tags', [{ xml: ['a b'] }], 'tags: xml: expected'],
  ['classify', [['a']], 'classify: classes: expected'],
  ['classify', [['a', 'b'], { samples: 0 }], 'classify: samples: expected a whole number'],
  ['binaryClassify', [{ sample: 3 }], 'classify: "sample" is not an option; did you mean samples?'],
  ['s3Stores', [{ bucket: 'X' }], 's3Stores: bucket: expected 3 to 63 lowercase'],
  ['s3Stores', [{ bucket: 'agents', regoin: 'x' }], 's3Stores: "regoin" is not an option; did you'],
  ['perdurePlugin', [{ agents: [7] }], 'config: agents[0]: expected'],
  ['perdurePlugin', [{ agents: [], blob: {} }], 'perdurePlugin: "blob" is not an option; did you'],
  [
    'perdurePlugin',
    [{ agents: [], taskQueue: 'x', address: 'a:1' }],
    'perdurePlugin: taskQueue belongs to your own worker; pass it to Worker.create, and omit it ' +
      'here\nperdurePlugin: address belongs to your own connection; pass it to NativeConnection.connect',
  ],
  ['fileTools', [{ rot: '.' }], 'fileTools:'],
  ['fileTools', [{ root: '.', deny: ['{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}'] }], 'fileTools: '],
  ['askPerson', [{ expires: 0 }], 'askPerson: expires: expected'],
  ['today', [{ timeZone: 'Mars/Base' }], 'today: time zone "Mars/Base" is unknown'],
  ['answer', [{ output: 7 }], 'answer: output: expected a zod type'],
];

const n = { n: z.number() };
const tool = { name: 't', description: 'x', effect: 'read', input: z.object(n), execute: () => 1 };

const DOUBLE = call('defineTool', tool);

/** Mistakes of beginners, with parts of the message: the field, the value, and the fix. */
const BEGINNERS: readonly (readonly [string, string, object, readonly string[]])[] = [
  ['a raw shape', 'defineTool', { ...tool, input: n }, ['input: ', 'an object', 'z.object({ … })']],
  ['no effect', 'defineTool', { ...tool, effect: undefined }, ['effect: ', '"read"', '"once"']],
  ['no function', 'defineTool', { ...tool, execute: undefined }, ['execute: expected a function']],
  ['no name', 'defineAgent', { instructions: 'x' }, ['agent: name: missing']],
  [
    'tools by name',
    'defineAgent',
    { name: 'a', instructions: 'x', tools: {} },
    ['tools: ', 'array'],
  ],
  [
    'a duration',
    'defineAgent',
    { name: 'a', instructions: 'x', limits: { wallMs: '5 minutes' } },
    ['limits.wallMs: expected', 'ms', 'write wall: "5 minutes"'],
  ],
  [
    'a time that is none',
    'defineAgent',
    { name: 'a', instructions: 'x', limits: { wall: 'five minutes' } },
    ['limits.wall: expected', '"5 minutes"', 'got "five minutes"'],
  ],
  [
    'a tool twice',
    'defineAgent',
    { name: 'a', instructions: 'x', tools: [DOUBLE, DOUBLE] },
    ['"t"'],
  ],
  [
    'a wrong op',
    'defineAgent',
    {
      name: 'a',
      instructions: 'x',
      rules: [{ tool: 't*', where: { op: '>', path: 'n', value: 1 }, then: 'ask' }],
    },
    ['rules[0].where.op: expected one of eq', '">"'],
  ],
];

/** Compiled, never called: each marked line must not compile. */
export function wrongTypes(client: perdure.PerdureClient): void {
  const base = { name: 't', description: 'x', effect: 'read', execute: () => 1 } as const;
  // @ts-expect-error -- a raw shape, as in MCP's SDK
  perdure.defineTool({ ...base, input: n });
  // @ts-expect-error -- no effect
  perdure.defineTool({ name: 't', description: 'x', input: z.object(n), execute: () => 1 });
  // @ts-expect-error -- words are for `wall`
  perdure.defineAgent({ name: 'a', instructions: 'x', limits: { wallMs: '5 minutes' } });
  // @ts-expect-error -- no duration
  perdure.defineAgent({ name: 'a', instructions: 'x', limits: { wall: 'five minutes' } });
  // @ts-expect-error -- a decide function returns calls or an answer, not a text
  perdure.defineAgent({ name: 'a', instructions: 'x', decide: async () => 'done' });
  // @ts-expect-error -- the message is not the run
  void client.send({ run: 'desk-1', message: 'Hello' });
  // @ts-expect-error -- the former name
  void client.ask('desk-1', 'Hello');
  const rule = { tool: 't', then: 'ask' } as const;
  const where = { op: '>', path: 'n', value: 1 } as const;
  // @ts-expect-error -- no such operator
  perdure.defineAgent({ name: 'a', instructions: 'x', rules: [{ ...rule, where }] });
  // @ts-expect-error -- an open run does not end
  void client.run('desk', 'Hello', { open: true });
}

const SECRET = 'hunter2-token';

describe('the mistake in a definition', () => {
  test.each(BEGINNERS)('of a beginner, %s, names field and fix', (_, name, options, parts) => {
    for (const part of parts) expect(() => call(name, options)).toThrow(part);
  });

  test('a time of a limit is a duration, in ms or in words', () => {
    const agent = perdure.defineAgent({
      name: 'a',
      instructions: 'x',
      limits: { wall: '5 minutes', run: { wall: 1_000 } },
    });
    expect(agent.limits).toEqual({ wallMs: 300_000, run: { wallMs: 1_000 } });
    const both = { name: 'a', instructions: 'x', limits: { wall: 1, wallMs: 1 } };
    expect(() => call('defineAgent', both)).toThrow(
      'limits.wall: expected wall or wallMs, got both',
    );
  });

  test.each(CASES)('%s(%j) is an InputError', (name, given, message) => {
    let thrown: unknown = null;
    try {
      call(name, ...given);
    } catch (error) {
      thrown = error;
    }
    expect(InputError.isInstance(thrown)).toBe(true);
    expect((thrown as Error).message.slice(0, message.length)).toBe(message);
  });

  test.each([
    [undefined, 'createWorker: missing, expected'],
    [
      { config: { agents: [] }, taskQeue: 'x' },
      'createWorker: "taskQeue" is not an option; did you',
    ],
    [
      { config: { agents: [] }, maxCahced: 1 },
      'createWorker: "maxCahced" is not an option; did you mean maxCachedWorkflows?',
    ],
    [
      { config: { agents: [] }, queue: 'x' },
      'createWorker: "queue" is not an option; did you mean taskQueue?',
    ],
    [
      { config: { agents: [] }, agents: [] },
      'createWorker: "agents" is not an option; did you mean config: defineConfig({ agents })?',
    ],
    [{ config: {} }, 'createWorker: config: expected a configuration; make it with defineConfig'],
    [{ config: { agents: [] }, heartbeat: 5 }, 'createWorker: heartbeat: expected'],
    [
      { config: { agents: [] }, shutdownGraceMs: 5 },
      'createWorker: "shutdownGraceMs" is not an option; did you mean shutdownGrace?',
    ],
    [{ config: { agents: [] }, segment: { steps: 0, bytes: 1 } }, 'createWorker: segment.steps: '],
    [{ config: { agents: [] }, live: { prot: 1 } }, 'createWorker: live: "prot" is not an option'],
    [{ config: { agents: [] }, secrets: 'KEY' }, 'createWorker: secrets: expected a list'],
  ])('createWorker(%j) rejects with one', async (options, message) => {
    const error: unknown = await Promise.resolve(call('createWorker', options)).catch(
      (reason: unknown) => reason,
    );
    expect(InputError.isInstance(error)).toBe(true);
    expect((error as Error).message.slice(0, message.length)).toBe(message);
  });

  const server = { name: 'm', transport: 'http', headers: { Authorization: SECRET } };
  const config = { agents: [] };
  test.each([
    ['createClient', { config: SECRET }, 'createClient: config: expected a configuration; make'],
    ['createClient', { config: { apiKey: SECRET } }, 'createClient: config: expected a config'],
    [
      'createClient',
      { address: { apiKey: SECRET } },
      'createClient: address: expected string, got',
    ],
    ['createWorker', { config: SECRET }, 'createWorker: config: expected a configuration; make'],
    ['createWorker', { config, live: SECRET }, 'createWorker: live: expected object, got a text'],
    ['createWorker', { config, env: SECRET }, 'createWorker: env: expected object, got a text'],
    ['createWorker', { config, blobs: { key: SECRET } }, 'createWorker: blobs: expected a blob'],
    ['createWorker', { config, notify: SECRET }, 'createWorker: notify: expected object, got a'],
    ['defineConfig', { agents: [], models: SECRET }, 'config: models: expected object, got a text'],
    ['defineAgent', { name: 'a', instructions: '', mcp: [server] }, 'agent "a": mcp[0]: expected'],
    ['defineAgent', { name: 'a', instructions: '', mcp: [SECRET] }, 'agent "a": mcp[0]: expected'],
    ['mcpServer', { name: 'm', transport: server }, 'MCP server "m": transport: expected "stdio"'],
    [
      'mcpServer',
      { name: 'm', transport: 'stdio', command: 'x', args: SECRET },
      'MCP server "m": ',
    ],
    ['s3Stores', { bucket: `KEY:${SECRET}@agents` }, 's3Stores: bucket: expected 3 to 63'],
  ])('%s(%j) shows no secret', async (name, options, message) => {
    const error: unknown = await Promise.resolve()
      .then(() => call(name, options))
      .catch((reason: unknown) => reason);
    expect(InputError.isInstance(error)).toBe(true);
    expect((error as Error).message.slice(0, message.length)).toBe(message);
    expect((error as Error).message).not.toContain(SECRET);
  });

  test('wire() throws one', () => {
    const graph = graphs.defineGraph({
      name: 'g',
      state: z.object({}),
      nodes: ({ run }) => ({ load: run({ run: async () => ({}) }) }),
    });
    // @ts-expect-error -- no node has this name
    expect(() => graph.wire({ start: 'lod', edges: { load: 'end' } })).toThrow(InputError);
    // @ts-expect-error -- no option has this name
    expect(() => graph.wire({ strat: 'load', edges: { load: 'end' } })).toThrow(
      'graph "g": "strat" is not an option; did you mean start?',
    );
  });
});
