import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toAgentDefinition } from '../../src/agents/agent-definition.js';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { AgentDefinition } from '../../src/core/definition/definition.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Tool } from '../../src/tools/tool.js';

type Options = Partial<Parameters<typeof defineAgent>[0]>;
const agent = (options: Options): Agent =>
  defineAgent({ name: 'a', instructions: 'help', toolExposure: 'catalog', ...options });

const tool = (
  description: string,
  rest: { name?: string; effect?: Effect; catalog?: Tool['catalog'] } = {},
) =>
  defineTool({
    name: 'look',
    description,
    effect: 'read',
    input: z.object({}),
    execute: () => null,
    ...rest,
  } as Parameters<typeof defineTool>[0]);

const engine = tool('of the engine', { name: 'read_result' });
const pinned = (of: Agent): AgentDefinition =>
  toAgentDefinition(of, { model: 'm', tools: [...of.tools.tools, engine] });
const entryOf = (one: Tool) => pinned(agent({ tools: [one] })).tools[0]?.catalog;

describe('the catalog entry of a tool', () => {
  test('is what its author wrote', () => {
    const catalog = { summary: 'Looks', category: 'eyes', actions: ['read', 'search'] };
    expect(entryOf(tool('does more', { catalog }))).toEqual(catalog);
  });

  test.each([
    ['Looks around. Then it says what it saw.', 'Looks around.'],
    ['Reads a file, e.g. notes.txt, or v1.2 of it', 'Reads a file, e.g. notes.txt, or v1.2 of it'],
    ['  Looks\n  around!  It is quick.', 'Looks around!'],
    ['Looks around\n\nand around', 'Looks around'],
    ['Übergibt. Überall.', 'Übergibt.'],
  ])('is derived from the description %j', (description, summary) => {
    expect(entryOf(tool(description))).toEqual({ summary, category: 'other', actions: ['read'] });
  });

  test('is short, and marks tools that write', () => {
    const entry = entryOf(tool('x'.repeat(500), { effect: 'once' }));
    expect(entry?.summary).toHaveLength(160);
    expect(entry?.actions).toEqual(['write']);
  });

  test('is pinned only with a catalog, and only for the tools of the author', () => {
    const catalog = { summary: 'Looks', category: 'eyes', actions: [] };
    const withEntry = agent({ tools: [tool('looks', { catalog })], toolExposure: 'all' });
    const without = agent({ tools: [tool('looks')], toolExposure: 'all' });
    expect(pinned(withEntry)).toEqual(pinned(without));
    expect(JSON.stringify(pinned(withEntry))).not.toContain('atalog');
    const shown = pinned(agent({ tools: [tool('looks', { catalog })] }));
    expect(shown.toolExposure).toBe('catalog');
    expect(shown.tools.map((one) => [one.name, one.catalog?.category])).toEqual([
      ['look', 'eyes'],
      ['read_result', undefined],
    ]);
    expect(shown.hash).not.toBe(pinned(without).hash);
  });

  test('is refused if it would make a list of many tools too long', () => {
    const given = { summary: 's', category: 'c', actions: ['read'] };
    const wrong = (part: Partial<typeof given>) => () =>
      tool('x', { catalog: { ...given, ...part } });
    expect(wrong({ summary: 's'.repeat(201) })).toThrow(
      'catalog.summary: expected string to have <=200 characters',
    );
    expect(wrong({ category: '' })).toThrow(
      'catalog.category: expected string to have >=1 characters',
    );
    expect(wrong({ actions: ['a'.repeat(65)] })).toThrow(
      'catalog.actions[0]: expected string to have <=64 characters',
    );
    expect(wrong({ actions: Array<string>(21).fill('a') })).toThrow(
      'catalog.actions: expected array to have <=20 items',
    );
  });
});

describe('an agent with a catalog', () => {
  test('has no tool with a name of the catalog, and no decide function', () => {
    const taken = tool('x', { name: 'invoke_tool' });
    expect(() => agent({ tools: [taken] })).toThrow(
      /the engine itself uses the name "invoke_tool"; rename/,
    );
    expect(() => agent({ tools: [taken], toolExposure: 'all' })).not.toThrow();
    expect(() => agent({ decide: () => ({ answer: '' }) })).toThrow(/"catalog" is for models/);
    expect(() => agent({ toolExposure: 'some' as 'all' })).toThrow(
      'toolExposure: expected one of "all"|"catalog", got "some"',
    );
  });
});
