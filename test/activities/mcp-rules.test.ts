import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ActivityDependencies } from '../../src/activities/activity-context.js';
import { loadAgent } from '../../src/activities/load-agent.js';
import { createAgentCatalog } from '../../src/agents/agent-definition.js';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Rule } from '../../src/core/definition/rules.js';
import type { RunConfig } from '../../src/core/state/state.js';
import { NoProtocolError } from '../../src/mcp/connection.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { fileToolLock } from '../../src/storage/file-stores.js';
import { inActivity, pinnedAgent, workerDeps } from '../support/activity.js';

const files = { name: 'files', transport: 'stdio', command: 'files' } as const;
const ask = { then: 'ask' } as const;
const schema = {
  type: 'object',
  properties: { path: { type: 'string' } },
  additionalProperties: false,
} as const;

function clerk(rules: readonly Rule[], mcp = [mcpServer(files)]): Agent {
  return defineAgent({ name: 'clerk', instructions: 'x', model: 'm', mcp, rules });
}

interface Given {
  /** What the server lists, or the error if it cannot be reached. */
  readonly tools?: readonly string[] | Error;
  readonly attempt?: number;
  readonly rules?: readonly Rule[];
  readonly others?: readonly Agent[];
  readonly home?: string;
}

/** Starts a run of the agent on a worker whose MCP servers list these tools. */
async function load(
  agent: Agent,
  { tools = ['read_file', 'write_file'], rules = [], others = [], home, attempt = 1 }: Given = {},
): Promise<RunConfig> {
  const place = home ?? (await mkdtemp(join(tmpdir(), 'perdure-rules-')));
  const listing = async () => {
    if (tools instanceof Error) throw tools;
    const listed = tools.map((name) => {
      return { name, description: name, schema, annotations: {}, hash: name };
    });
    return { tools: listed, odd: [] };
  };
  const deps = {
    ...workerDeps(pinnedAgent([]), { rules }),
    agents: createAgentCatalog([agent, ...others], { defaultModel: '', builtIn: [] }),
    models: { resolve: () => ({ price: null, window: null }) },
    searchAttributes: async () => [],
    mcp: { of: () => ({ listing }) },
    toolLock: fileToolLock(place),
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the part that this activity uses
  const given = deps as unknown as ActivityDependencies;
  return await inActivity(() => loadAgent(given, { agent: 'clerk', limits: {}, withMcp: true }), {
    attempt,
  });
}

const WRONG: readonly (readonly [string, Rule, string])[] = [
  [
    'a misspelled tool',
    { tool: 'files__wrte_file', ...ask },
    'rules[0].tool: expected the name of a tool that exists, got "files__wrte_file" (did you mean "files__write_file"); MCP tools are named <server>__<tool>; correct it',
  ],
  [
    'a tool that the server never had',
    { tool: 'files__erase_the_disk', ...ask },
    'rules[0].tool: expected the name of a tool that exists, got "files__erase_the_disk"',
  ],
  [
    'an effect that the tool does not have',
    { tool: 'files__write_file', effect: 'read', ...ask },
    'rules[0].effect: expected "once", the effect of tool "files__write_file", got "read"',
  ],
  [
    'an argument that the tool does not have',
    { tool: 'files__write_file', where: { op: 'exists', path: 'pth' }, ...ask },
    'rules[0].where.path',
  ],
];

test.each(WRONG)('a run does not start with a rule about %s', async (_, rule, message) => {
  const refused = (owner: string) => ({
    type: 'AgentRefused',
    message: expect.stringContaining(`${owner}: ${message}`) as string,
  });
  await expect(load(clerk([rule]))).rejects.toMatchObject(refused('agent "clerk"'));
  await expect(load(clerk([]), { rules: [rule] })).rejects.toMatchObject(refused('config'));
});

test('a rule about a tool that the agent does not get is harmless', async () => {
  const rules = [{ tool: 'files__write_file', ...ask }];
  const reader = mcpServer({ ...files, allowTools: ['read_file'] });
  const accepted = mcpServer({ ...files, trust: 'accepted' });
  for (const server of [reader, accepted]) {
    await expect(load(clerk(rules, [server]))).resolves.toBeDefined();
    await expect(load(clerk([], [server]), { rules })).resolves.toBeDefined();
  }
  const misspelled = [{ tool: 'files__raed_file', ...ask }];
  await expect(load(clerk(misspelled, [reader]))).rejects.toThrow('"files__read_file"');
});

test('a server of which no tool has been accepted is named, with the command that accepts', async () => {
  const accepted = mcpServer({ ...files, trust: 'accepted' });
  const { definition } = await load(clerk([], [accepted]));
  expect(definition.mcp?.left).toEqual([
    {
      server: 'files',
      message: expect.stringMatching(
        /^none of its \d tools has been accepted, so this run has none of them; accept them with: .*perdure mcp accept files$/,
      ) as string,
    },
  ]);
  expect((await load(clerk([]))).definition.mcp?.left).toBeUndefined();
});

test('a rule about a tool that the server had before is harmless', async () => {
  const home = await mkdtemp(join(tmpdir(), 'perdure-rules-'));
  const agent = clerk([{ tool: 'files__write_file', ...ask }]);
  await load(agent, { home });
  await expect(load(agent, { home, tools: ['read_file'] })).resolves.toBeDefined();
});

test('a rule about a server that the run works without does not end the run', async () => {
  const server = mcpServer({ ...files, startup: 'best_effort' });
  const rules = [{ tool: 'files__wrte_file', ...ask }];
  const { definition } = await load(clerk(rules, [server]), {
    tools: new Error('it cannot be reached'),
    rules,
  });
  expect(definition.mcp?.left).toMatchObject([{ server: 'files' }]);
});

test('a glob may be written ahead', async () => {
  const rules = [{ tool: 'files__delete*', ...ask }];
  await expect(load(clerk(rules), { rules })).resolves.toBeDefined();
});

test('a rule of the configuration may be about the tools of another agent', async () => {
  const named = (mcp: Parameters<typeof mcpServer>[0]): Agent =>
    defineAgent({ name: 'other', instructions: 'x', model: 'm', mcp: [mcpServer(mcp)] });
  const mail = named({ ...files, name: 'mail' });
  const sends = [{ tool: 'mail__send', ...ask }];
  await expect(load(clerk([]), { rules: sends, others: [mail] })).resolves.toBeDefined();
  const elsewhere = named({ ...files, command: 'other-files' });
  const moves = [{ tool: 'files__move_file', ...ask }];
  await expect(load(clerk([]), { rules: moves, others: [elsewhere] })).resolves.toBeDefined();
  await expect(load(clerk([]), { rules: moves, others: [named(files)] })).rejects.toThrow('config');
});

test('a rule of the configuration may be about the effect that another agent gives a tool', async () => {
  const mcp = [mcpServer({ ...files, effects: { read_file: 'read' } })];
  const other = defineAgent({ name: 'other', instructions: 'x', model: 'm', mcp });
  const rules: readonly Rule[] = [{ tool: 'files__read_file', effect: 'read', ...ask }];
  await expect(load(clerk([]), { rules, others: [other] })).resolves.toBeDefined();
  await expect(load(clerk([]), { rules })).rejects.toThrow('rules[0].effect');
});

test('a run ends at the second start of a server that has written only what is not the protocol', async () => {
  const tools = new NoProtocolError('it writes a banner', 'check it');
  for (const [attempt, type] of [
    [1, 'McpUnreachable'],
    [2, 'AgentRefused'],
  ] as const) {
    await expect(load(clerk([]), { tools, attempt })).rejects.toMatchObject({
      type,
      message: expect.stringContaining('it writes a banner') as string,
    });
  }
  const other = load(clerk([]), { tools: new Error('it cannot be reached'), attempt: 2 });
  await expect(other).rejects.toMatchObject({ type: 'McpUnreachable' });
});
