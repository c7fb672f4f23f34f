import { expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { toListedAgent } from '../../src/http/mcp-tools.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';

test('an agent without a description is listed with its MCP servers', () => {
  const mcp = ['files', 'orders'].map((name) =>
    mcpServer({ name, transport: 'stdio', command: 'x' }),
  );
  const agent = defineAgent({ name: 'clerk', instructions: 'x', model: 'm', mcp });
  expect(toListedAgent(agent)).toEqual({
    name: 'clerk',
    description: 'no description; tools of the MCP servers files, orders',
  });
});
