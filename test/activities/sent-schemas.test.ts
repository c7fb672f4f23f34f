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
import type { NodeKind } from '../../src/core/definition/graph-definition.js';
import type { JsonObject } from '../../src/core/text/json.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { listedTool, usableTool } from '../../src/mcp/listed-tool.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { createChatRequest } from '../../src/models/openai/chat/request.js';
import { classify } from '../../src/output/classes/classes.js';
import { toStrictSchema } from '../../src/output/strict-schema.js';
import { tags } from '../../src/output/parse-tags.js';
import { strictFault, strictProblem } from '../../src/testing/strict-check.js';
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

const base = { name: 'desk', instructions: 'Help.', model: 'm' };
const pinned = (agent: Agent, more: readonly Tool[] = []): PinnedAgent => {
  const all = [...agent.tools.tools, ...more];
  const definition = toAgentDefinition(agent, { model: 'm', tools: all });
  return { definition, tools: createToolRegistry(all), agent, current: true };
};
const agentWith = (options: Partial<AgentOptions>): PinnedAgent =>
  pinned(defineAgent({ ...base, ...options }));

/** The request of a model call, as Chat Completions gets it. */
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
  return createChatRequest({ ...request, model: 'gpt-5-mini' }, { stream: false });
}

/** Why the provider would refuse a request, and whether its answer's schema is enforced. */
function checked(agent: PinnedAgent, input: Partial<CallModelInput> = {}) {
  const body = sent(agent, input);
  const format = body.response_format;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parts that the check reads
  const fault = strictFault({ api: 'chat', body } as never);
  const isStrict = format?.type === 'json_schema' ? format.json_schema.strict === true : undefined;
  return { fault, isStrict };
}
const STRICT = { fault: undefined, isStrict: true };
const NONE = { fault: undefined, isStrict: undefined };

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
    const { tools: shown = [] } = sent(agentWith({ tools: own, toolExposure: 'catalog' }));
    const isOpen = Object.fromEntries(
      shown.map(({ function: { name, parameters } }) => [name, !toStrictSchema(parameters).ok]),
    );
    expect(isOpen).toEqual({ [DISCOVER_TOOLS]: false, [INVOKE]: true, [TOOL_SCHEMA]: false });
  });
});

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
      [z.record(z.string(), z.string()), { fault: undefined, isStrict: false }],
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
  const recursive = z.object({
    get children() {
      return z.array(recursive);
    },
  });
  const many = [...tools, ...own, tool('tree', z.object({ tree: recursive }), () => 'x')];

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
