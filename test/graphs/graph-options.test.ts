import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { definitionAt } from '../../src/core/graph/node-definition.js';
import { defineAgent, defineGraph, planAndExecute } from '../../src/index.js';
import { config } from '../support/scripts.js';

const only = z.object({ text: z.string() });
const ends = { start: 'a', edges: { a: 'end' } } as never;
const runs = ({ run }: { run: (options: object) => unknown }) => ({ a: run({ run: () => ({}) }) });

describe('the options of an agent', () => {
  test.each([
    ['toolChoice', 'required', 'give `toolChoice` to the decide node'],
    ['output', z.string(), 'answerFrom'],
    ['prompts', {}, 'an agent that a node calls'],
    ['toolExposure', 'catalog', 'planning: "catalog"'],
    ['onPlainText', 'fail', 'exit `text`'],
  ])('that a graph does not have are refused by name: %s', (name, value, fix) => {
    const given = { name: 'g', state: only, nodes: runs, [name]: value };
    expect(() => defineGraph(given as never)).toThrow(
      `graph "g": ${name}: expected no such option`,
    );
    expect(() => defineGraph(given as never)).toThrow(fix);
    const planner = { name: 'p', instructions: 'x', [name]: value };
    expect(() => planAndExecute(planner as never)).toThrow(`planAndExecute "p": ${name}`);
  });

  test('that make sense are passed on, and agents are tools of the model', () => {
    const desk = defineAgent({ name: 'desk', instructions: 'x', description: 'A desk.' });
    const rest = { remember: async () => {}, retrieve: async () => [], compaction: false } as const;
    const planner = planAndExecute({
      name: 'p',
      instructions: 'x',
      agents: [desk],
      texts: { closing: 'Stop now.' },
      forkFrom: ['desk'],
      ...rest,
    });
    expect(planner.tools.names).toEqual(['desk']);
    expect(planner.agents).toEqual([desk]);
    expect(planner).toMatchObject({
      compaction: null,
      forkFrom: ['desk'],
      texts: { closing: 'Stop now.' },
    });
    expect(planner.retrieve).not.toBeNull();
    expect(planner.remember).not.toBeNull();
  });

  test('a decide node may require a call', () => {
    const desk = defineAgent({ name: 'desk', instructions: 'x', description: 'A desk.' });
    const graph = defineGraph({
      name: 'g',
      instructions: 'x',
      state: only,
      agents: [desk],
      nodes: ({ decide, tool }) => ({
        pick: decide({ tools: ['desk'], toolChoice: 'required' }),
        call: tool({ tool: 'desk' }),
      }),
    }).wire({ start: 'pick', edges: { pick: { desk: 'call', text: 'end' }, call: 'end' } });
    expect(graph.graph.definition.nodes[0]).toMatchObject({
      kind: 'decide',
      toolChoice: 'required',
    });
    const { definition } = graph.graph;
    const base = { ...config().definition, graph: definition };
    expect(definitionAt(base, 'pick').toolChoice).toBe('required');
    expect(definitionAt(base, 'call').toolChoice).toBe('auto');
  });
});

test.each([
  ['a map', z.map(z.string(), z.string()), 'z.map()'],
  ['a date', z.date().optional(), 'z.date()'],
  ['a list of sets', z.array(z.object({ all: z.set(z.string()) })), 'z.set()'],
])('a state that JSON cannot hold is refused: %s', (_, type, kind) => {
  const given = { name: 'g', state: z.object({ at: type }), nodes: runs };
  expect(() => defineGraph(given as never)).toThrow(
    `state.at: expected a type whose values are JSON, got ${kind}`,
  );
  const coerced = { ...given, state: z.object({ at: z.coerce.date() }) };
  expect(() => defineGraph(coerced as never).wire(ends)).not.toThrow();
});
