import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { checkPlannedArguments } from '../../src/tools/arguments/check-arguments.js';
import { defineTool } from '../../src/tools/define-tool.js';

const findOrder = defineTool({
  name: 'find_order',
  description: 'Finds an order.',
  input: z.object({ id: z.string() }),
  effect: 'read',
  execute: ({ id }) => id,
});
const base = {
  name: 'looker',
  instructions: 'Look.',
  state: z.object({ message: z.string() }),
  messageTo: 'message' as const,
  tools: [findOrder],
};

/** Defines a graph that decides among these tools, at these MCP servers. */
const deciding = (tools: readonly string[], servers: readonly string[] = []) =>
  defineGraph({
    ...base,
    mcp: servers.map((name) => mcpServer({ name, transport: 'stdio', command: 'shop' })),
    nodes: ({ decide }) => ({ decide: decide({ tools: [...tools] }) }),
  });

test('a misspelled tool of a decide node is named before the tool that it lacks', () => {
  const misspelled =
    'graph "looker": node "decide": the graph has no tool "find_ordr", did you mean "find_order"?; its tools are find_order';
  expect(() => deciding(['find_ordr'])).toThrow(misspelled);
  expect(() => deciding(['find_ordr'], ['shop'])).toThrow(misspelled);
  expect(() => deciding(['shop__buy'], ['shop'])).toThrow(
    'tools: the graph also has the tool "find_order"; add it',
  );
  expect(() => deciding(['find_order', 'shop__buy'], ['shop'])).not.toThrow();
});

test('an unknown node lists the end, which may be meant', () => {
  const graph = defineGraph({
    ...base,
    nodes: ({ run }) => ({ sort: run({ run: async () => ({}) }) }),
  });
  const wire = (to: string) => () => graph.wire({ start: 'sort', edges: { sort: to as 'end' } });
  expect(wire('srt')).toThrow(
    'unknown node "srt", did you mean "sort"?; expected one of sort, end',
  );
  expect(wire('edn')).toThrow('unknown node "edn", did you mean "end"?; expected one of sort, end');
});

test('a reference is described in the notation of the table of a plan', async () => {
  const { described } = await checkPlannedArguments(findOrder, {
    id: { $ref: 'a1', path: 'data.id' },
    whole: { $ref: 'a2' },
  });
  expect(described).toEqual({ id: '<a1.data.id>', whole: '<a2>' });
});
