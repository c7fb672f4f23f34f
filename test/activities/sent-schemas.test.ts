import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createModelRequest } from '../../src/activities/model/model-request.js';
import { decisionRequest, readDecision } from '../../src/activities/model/answer-formats.js';
import { pinnedAt, type PinnedAgent } from '../../src/activities/activity-context.js';
import { toAgentDefinition } from '../../src/agents/agent-definition.js';
import type { Agent, AgentOptions } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { DISCOVER_TOOLS, INVOKE, TOOL_SCHEMA } from '../../src/core/transcript/catalog.js';
import type { CallModelInput } from '../../src/core/run/contract.js';
import type { OutputDefinition } from '../../src/core/definition/definition.js';
import type { ToolDefinition, ToolKind } from '../../src/core/definition/tool-definition.js';
import type { NodeKind } from '../../src/core/definition/node-kinds.js';
import { isObject, type JsonObject } from '../../src/core/text/json.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { listedTool, usableTool } from '../../src/mcp/listed-tool.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { createMessagesRequest } from '../../src/models/anthropic/request.js';
import { getCapabilities } from '../../src/models/known-models.js';
import { createChatRequest } from '../../src/models/openai/chat/request.js';
import { createResponsesRequest } from '../../src/models/openai/responses/request.js';
import { NO_DATA } from '../../src/models/wire/attachment-parts.js';
import { NO_REPLAY } from '../../src/models/wire/opaque-fields.js';
import { classify } from '../../src/output/classes/classes.js';
import { toStrictSchema } from '../../src/output/strict-schema.js';
import { tags } from '../../src/output/parse-tags.js';
import { strictFault, strictProblem } from '../../src/testing/strict-check.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { agentTool, askPerson, wait } from '../../src/tools/built-in/workflow-tools.js';
import {
  answer,
  listArtifacts,
  readResultTool,
  returnArtifact,
  today,
} from '../../src/tools/built-in/default-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { fileTools } from '../../src/tools/files/file-tools.js';
import { createToolRegistry, toToolDefinition, type Tool } from '../../src/tools/tool.js';
import { memoryBlobs } from '../support/activity.js';

const called = defineAgent({
  name: 'called',
  description: 'Helps.',
  instructions: 'x',
  model: 'm',
});
const tool = (name: string, input: z.ZodObject, execute?: () => string): Tool =>
  defineTool({ name, description: 'A tool.', input, effect: 'keyed', ...(execute && { execute }) });
const own = [
  tool('open', z.object({ labels: z.record(z.string(), z.string()) }), () => 'x'),
  tool('plain', z.object({ q: z.string(), limit: z.number().optional() }), () => 'x'),
];
const server = mcpServer({ name: 'crm', transport: 'stdio', command: 'x' });
const listed = (name: string, inputSchema: JsonObject): ToolDefinition => {
  const read = listedTool({ name, description: 'A tool.', inputSchema });
  const usable = read && usableTool(server, read);
  if (!usable?.ok) throw new Error('not usable');
  return usable.definition;
};

const builtIn: readonly Tool[] = [
  agentTool({ agent: 'called', description: 'Helps.' }),
  answer(),
  askPerson(),
  listArtifacts(),
  readResultTool(memoryBlobs()),
  returnArtifact(),
  today(),
  wait(),
];
const files = fileTools({ root: '.', write: true });
const tools: readonly Tool[] = [...builtIn, ...files];

/** Tools by kind. A new kind belongs here. */
const KINDS: Record<ToolKind, string> = {
  wait: 'wait',
  agent: 'called',
  artifacts: 'list_artifacts',
  question: 'ask_person',
  client: 'pick',
};

const recursive = z.object({
  get children() {
    return z.array(recursive);
  },
});

const base = { name: 'desk', instructions: 'Help.', model: 'm' };
const pinned = (agent: Agent, more: readonly Tool[] = []): PinnedAgent => {
  const all = [...agent.tools.tools, ...more];
  const definition = toAgentDefinition(agent, { model: 'm', tools: all });
  return { definition, tools: createToolRegistry(all), agent, current: true };
};
const agentWith = (options: Partial<AgentOptions>): PinnedAgent =>
  pinned(defineAgent({ ...base, ...options }));

/** The request of a model call in the form of each API. */
function sent(agent: PinnedAgent, input: Partial<CallModelInput> = {}) {
  const messages = [{ role: 'user' as const, text: 'Hello' }];
  const run = { id: 'run-1' };
  const place = { ...(input.node !== undefined && { node: input.node }) };
  const prompt = { run, pinned: pinnedAt(agent, place), messages };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parts that a request is made of
  const request = createModelRequest(
    { blobs: memoryBlobs() },
    prompt as never,
    input as CallModelInput,
  );
  const gpt = { ...request, model: 'gpt-5-mini' };
  const capabilities = getCapabilities(gpt.model);
  const claude = { ...request, model: 'claude-sonnet-4-6' };
  return {
    instruction: request.responseFormat?.instruction,
    chat: createChatRequest(gpt, { stream: false }),
    responses: createResponsesRequest(gpt, {
      stream: false,
      capabilities,
      data: NO_DATA,
      replay: NO_REPLAY,
    }),
    messages: createMessagesRequest(claude, { stream: false }),
  };
}

/** Why a provider would refuse a request, and whether its answer's schema is enforced. */
interface Checked {
  readonly fault: unknown;
  readonly isStrict: boolean | undefined;
}

/** Checks a request in the form of each API. */
function checked(
  agent: PinnedAgent,
  input: Partial<CallModelInput> = {},
): Readonly<Record<StubRequest['api'], Checked>> {
  const { chat, responses, messages, instruction } = sent(agent, input);
  const format = chat.response_format;
  const fault = (api: StubRequest['api'], body: object) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parts that the check reads
    strictFault({ api, body } as never);
  const isStrict = format?.type === 'json_schema' ? format.json_schema.strict === true : undefined;
  const described = messages.system?.some(({ text }) => text.includes(instruction ?? '\0'));
  return {
    chat: { fault: fault('chat', chat), isStrict },
    responses: { fault: fault('responses', responses), isStrict: strictOf(responses.text) },
    messages: {
      fault: fault('messages', messages),
      isStrict: messages.output_config?.format ? true : described ? false : undefined,
    },
  };
}

function strictOf(text: JsonObject | undefined): boolean | undefined {
  const format = text?.['format'];
  return isObject(format) && format['type'] === 'json_schema'
    ? format['strict'] === true
    : undefined;
}

const everywhere = (expected: Checked) => ({
  chat: expected,
  responses: expected,
  messages: expected,
});
const STRICT = everywhere({ fault: undefined, isStrict: true });
/** The schema is described, and the answer is checked. */
const IN_WORDS = { fault: undefined, isStrict: false };
const NONE = everywhere({ fault: undefined, isStrict: undefined });

/** The number of tools that the files of a folder of `src/tools` define. */
function definedIn(name: string): number {
  const folder = new URL(`../../src/tools/${name}/`, import.meta.url);
  const texts = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), 'utf8'));
  return texts.join('\n').match(/^(?! \*).*\bdefineTool\(/gm)?.length ?? 0;
}

describe('each tool that perdure offers to a model', () => {
  test('is known to this test', () => {
    // The tool `answer` has two forms, with an output and without.
    expect(definedIn('built-in')).toBe(builtIn.length + 1);
    expect(definedIn('files')).toBe(files.length);
    const client = tool('pick', z.object({ q: z.string() }));
    const known = new Map([...tools, client].map((one) => [one.name, toToolDefinition(one)]));
    for (const [kind, name] of Object.entries(KINDS)) expect(known.get(name)?.kind).toBe(kind);
  });

  test.each(tools.map((one) => [one.name, one] as const))('has a strict form: %s', (_, one) => {
    const strict = toStrictSchema(toToolDefinition(one).parameters);
    expect(strict.ok ? strictProblem(strict.schema) : strict.problems).toBeNull();
  });

  test('of a catalog has one, apart from the arguments of any tool', () => {
    const { tools: shown = [] } = sent(agentWith({ tools: own, toolExposure: 'catalog' })).chat;
    const isOpen = Object.fromEntries(
      shown.map(({ function: { name, parameters } }) => [name, !toStrictSchema(parameters).ok]),
    );
    expect(isOpen).toEqual({ [DISCOVER_TOOLS]: false, [INVOKE]: true, [TOOL_SCHEMA]: false });
  });
});

describe('the tools of a request', () => {
  test('have the same schemas in each form, and none asks the provider to enforce them', () => {
    const { chat, responses, messages } = sent(agentWith({ tools: own }));
    const shapes = chat.tools?.map(({ function: { name, parameters } }) => [name, parameters]);
    expect(shapes?.map(([name]) => name)).toEqual(expect.arrayContaining(['open', 'plain']));
    expect(responses.tools?.map(({ name, parameters }) => [name, parameters])).toEqual(shapes);
    expect(messages.tools?.map((one) => [one.name, inputOf(one)])).toEqual(shapes);
    const strict = [...(chat.tools ?? []).map((one) => one.function), ...(messages.tools ?? [])];
    expect(strict.filter((one) => 'strict' in one)).toEqual([]);
    expect(responses.tools?.map((one) => one['strict'])).toEqual(shapes?.map(() => false));
  });
});

function inputOf(given: object): unknown {
  return 'input_schema' in given ? given.input_schema : undefined;
}

const plan = planAndExecute({
  ...base,
  tools: [...own, ...tools.filter(({ name }) => name === 'answer')],
  agents: [called],
  planning: 'schema',
});
const graph = defineGraph({
  ...base,
  state: z.object({ verdict: z.object({ ok: z.boolean() }).optional() }),
  tools: own.slice(1),
  nodes: ({ decide }) => ({
    choose: decide({ tools: ['plain'] }),
    judge: decide({ output: z.object({ ok: z.boolean() }), save: 'verdict' }),
  }),
}).wire({
  start: 'choose',
  edges: { choose: { plain: 'judge', text: 'judge' }, judge: { done: 'end' } },
});

/** What the kinds of nodes send to a model of their own. A new kind belongs here. */
const NODES: Record<NodeKind['kind'], readonly (readonly [Agent, string, object])[]> = {
  decide: [
    [graph, 'choose', NONE],
    [graph, 'judge', STRICT],
  ],
  plan: [[plan, 'plan', STRICT]],
  answer: [[plan, 'answer', NONE]],
  run: [],
  route: [],
  choose: [],
  agent: [],
  graph: [],
  execute: [],
  tool: [],
  each: [],
  confirm: [],
};

describe('the schema of an answer is enforced where it can be', () => {
  /** A new kind of output belongs here. */
  const OUTPUTS: Record<OutputDefinition['type'], readonly (readonly [unknown, object])[]> = {
    json: [
      [z.object({ name: z.string(), age: z.number().optional() }), STRICT],
      [z.array(z.string()), STRICT],
      [
        z.object({ stars: z.int().min(1).max(5), words: z.array(z.string().min(2)).min(2) }),
        STRICT,
      ],
      [recursive, { ...STRICT, messages: IN_WORDS }],
      [z.record(z.string(), z.string()), everywhere(IN_WORDS)],
    ],
    tags: [[tags({ fences: ['code'] }), NONE]],
    classes: [[classify(['good', 'bad']), NONE]],
    function: [[(text: string) => text, NONE]],
  };

  test.each(Object.entries(OUTPUTS))('of type %s', (_, cases) => {
    for (const [output, expected] of cases) {
      expect(checked(agentWith({ output } as Partial<AgentOptions>))).toEqual(expected);
    }
  });

  test.each(Object.entries(NODES))('of a node of kind %s', (_, cases) => {
    for (const [agent, node, expected] of cases) {
      expect([node, checked(pinned(agent), { node })]).toEqual([node, expected]);
    }
  });

  test('of a summary and of a closing answer', () => {
    expect(checked(agentWith({ tools: own }), { compact: 1 })).toEqual(NONE);
    const closing = checked(agentWith({ output: z.object({ a: z.string() }) }), { closing: true });
    expect(closing).toEqual(STRICT);
  });
});

describe('a decision by schema', () => {
  const open: JsonObject = { type: 'object', properties: { data: { type: 'object' } } };
  const tree = tool('tree', z.object({ tree: recursive }), () => 'x');
  const many = [...tools, ...own];

  test.each<[string, Partial<AgentOptions>]>([
    ['no tools', {}],
    ['one tool', { tools: [today()] }],
    [
      'all tools',
      { tools: many.filter(({ name }) => name !== 'answer' && name !== 'read_result') },
    ],
    ['a catalog', { tools: own, toolExposure: 'catalog' }],
    ['an output', { tools: own, output: z.object({ a: z.string(), b: z.number().optional() }) }],
    ['an open output', { tools: own, output: z.record(z.string(), z.string()) }],
  ])('is strict with %s', (_, options) => {
    expect(checked(agentWith({ ...options, decide: 'schema' }))).toEqual(STRICT);
  });

  test('is in the instructions alone at Anthropic if the arguments of a tool contain themselves', () => {
    const agent = agentWith({ tools: [tree], decide: 'schema' });
    expect(checked(agent)).toEqual({ ...STRICT, messages: NONE.messages });
    expect(sent(agent).messages.system?.[0]?.text).toContain('- tree: A tool.\n  arguments: {');
  });

  test('is strict with open tools of MCP servers, and reads their arguments as text', () => {
    const { definition } = agentWith({ tools: own, decide: 'schema' });
    const withMcp = { ...definition, tools: [...definition.tools, listed('add', open)] };
    const request = {
      model: 'm',
      instructions: 'x',
      messages: [],
      tools: [],
      toolChoice: 'auto',
      settings: {},
    } as const;
    const { responseFormat } = decisionRequest(request, withMcp);
    expect(strictProblem(responseFormat?.schema)).toBeNull();
    const read = (decision: JsonObject): unknown =>
      readDecision({ text: JSON.stringify({ decision }), calls: [], finish: 'stop' }, withMcp).reply
        .calls;
    expect(read({ action: 'crm__add', arguments: '{"data":{"n":1}}' })).toEqual([
      { name: 'crm__add', arguments: '{"data":{"n":1}}' },
    ]);
    expect(read({ action: 'plain', arguments: { q: 'x', limit: null } })).toEqual([
      { name: 'plain', arguments: '{"q":"x"}' },
    ]);
  });
});

test('the stub accepts the `$schema` that other libraries send with strict schemas, as OpenAI does', () => {
  const $schema = 'http://json-schema.org/draft-07/schema#';
  const schema = { type: 'object', properties: {}, required: [], additionalProperties: false };
  expect(strictProblem({ $schema, ...schema })).toBeNull();
});
