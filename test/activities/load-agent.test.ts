import { ApplicationFailureCategory } from '@temporalio/common';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { ActivityDependencies } from '../../src/activities/activity-context.js';
import { loadAgent } from '../../src/activities/load-agent.js';
import { createAgentCatalog } from '../../src/agents/agent-definition.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { isRunConfig } from '../../src/core/guards/recorded.js';
import type { ClientTool } from '../../src/core/definition/tool-definition.js';
import type { Rule } from '../../src/core/definition/rules.js';
import type { RunConfig } from '../../src/core/state/state.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { inActivity, pinnedAgent, workerDeps } from '../support/activity.js';

const clerk = defineAgent({
  name: 'clerk',
  instructions: 'x',
  model: 'm',
  rules: [{ tool: 'pay*', then: 'ask' }],
});

/** Loads an agent on a worker with this handling of requests. */
async function load(
  requests: Partial<ActivityDependencies['requests']>,
  rules?: readonly Rule[],
  agent = clerk,
  depth?: number,
  clientTools?: readonly ClientTool[],
): Promise<RunConfig> {
  const deps = {
    ...workerDeps(pinnedAgent([]), requests),
    agents: createAgentCatalog([agent], { defaultModel: '', builtIn: [] }),
    models: { resolve: () => ({ price: null, window: null }) },
    searchAttributes: async () => [],
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the part that this activity uses
  const given = deps as unknown as ActivityDependencies;
  return await inActivity(() =>
    loadAgent(given, {
      agent: 'clerk',
      limits: {},
      ...(rules && { rules }),
      ...(depth !== undefined && { depth }),
      ...(clientTools && { clientTools }),
    }),
  );
}

test('a run pins its worker’s handling of requests, and its rules', async () => {
  const config = await load({ mayDecide: () => true, notify: () => undefined });
  expect(isRunConfig(config)).toBe(true);
  expect(config.decisions).toEqual({ mayDecide: true, notify: true });
  expect(config.definition.rules).toEqual(clerk.rules);
  expect((await load({ notify: () => undefined })).decisions).toEqual({ notify: true });
});

test('a run pins nothing if its worker does not handle requests', async () => {
  expect(await load({})).not.toHaveProperty('decisions');
});

test('a run whose own rule names no tool of its agent is refused', async () => {
  await expect(load({}, [{ tool: 'pay', then: 'ask' }])).rejects.toMatchObject({
    type: 'AgentRefused',
    message: expect.stringContaining('rules[0].tool: expected the name of a tool') as string,
  });
  await expect(load({}, [{ tool: 'pay*', then: 'ask' }])).resolves.toBeDefined();
});

test('a called agent starts with the rules of its caller, which may name tools of the caller', async () => {
  await expect(load({}, [{ tool: 'pay', then: 'ask' }], clerk, 1)).resolves.toBeDefined();
});

test('that MCP servers list their tools first is no failure to warn about', async () => {
  const server = mcpServer({ name: 'shop', transport: 'stdio', command: 'x' });
  const buyer = defineAgent({ name: 'clerk', instructions: 'x', model: 'm', mcp: [server] });
  await expect(load({}, undefined, buyer)).rejects.toMatchObject({
    type: 'AgentNeedsTime',
    category: ApplicationFailureCategory.BENIGN,
  });
});

test('a run pins the tools of its caller, unless the agent has one of that name', async () => {
  const input = z.object({});
  const pay = defineTool({
    name: 'pay',
    description: 'x',
    effect: 'once',
    input,
    execute: () => 1,
  });
  const payer = defineAgent({ name: 'clerk', instructions: 'x', model: 'm', tools: [pay] });
  const config = await load({}, undefined, payer, undefined, [{ name: 'beep' }]);
  expect(isRunConfig(config)).toBe(true);
  const { tools, callerTools } = config.definition;
  expect(tools.map(({ name, kind }) => [name, kind])).toEqual([
    ['beep', 'client'],
    ['pay', undefined],
  ]);
  expect(callerTools?.names).toEqual(['beep']);
  await expect(load({}, undefined, payer, undefined, [{ name: 'pay' }])).rejects.toMatchObject({
    type: 'AgentRefused',
    message: expect.stringContaining('clientTools.0.name: expected a name that agent') as string,
  });
});
