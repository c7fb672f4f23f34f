import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CallResult } from '../../src/core/transcript/call-result.js';
import { END } from '../../src/core/definition/node-data.js';
import type { GraphDefinition } from '../../src/core/definition/graph-definition.js';
import type { GraphNode } from '../../src/core/definition/node-kinds.js';
import {
  isObject,
  parseJson,
  textField,
  type Json,
  type JsonObject,
} from '../../src/core/text/json.js';
import { runLoop, type Run } from '../../src/core/interpret/loop.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import type { ToolCall } from '../../src/core/transcript/messages.js';
import { getOutcome } from '../../src/core/state/turn.js';
import { node, ROUTE, RUN } from '../support/graph-agent.js';
import { config, SHORT } from '../support/scripts.js';
import { carry } from '../support/sim/play.js';
import { effectsOf } from '../support/turn.js';
import type { World } from '../support/world.js';

/** Names that every object has: none of them may have a meaning. */
const NAMES = ['a', 'constructor', 'toString', 'b', 'hasOwnProperty', 'valueOf', 'c', 'd'];
const FIELDS = ['count', 'trail', 'items', ...NAMES];

interface Shape {
  readonly kind: 'run' | 'route' | 'choose' | 'each' | 'fails';
  readonly to: readonly [number, number];
  readonly cap: number;
}

const shape: fc.Arbitrary<Shape> = fc.record({
  kind: fc.constantFrom('run', 'route', 'choose', 'each', 'fails'),
  to: fc.tuple(fc.nat(NAMES.length), fc.nat(NAMES.length)),
  cap: fc.integer({ min: 1, max: 3 }),
});

function graphFrom(shapes: readonly Shape[]): GraphDefinition {
  const target = (index: number): string => NAMES.slice(0, shapes.length)[index] ?? END;
  const nodes = shapes.map(({ kind, to: [one, two], cap }, index): GraphNode => {
    const name = target(index);
    const maxVisits = cap;
    // A backward edge could lead to a cycle of nodes that are all capped.
    const capped = target(index + 1);
    switch (kind) {
      case 'run':
        return node(name, { ...RUN, maxVisits }, { done: target(one), capped });
      case 'fails':
        return node(
          name,
          { ...RUN, maxVisits },
          { done: target(one), failed: target(two), capped },
        );
      case 'route':
        return node(
          name,
          { ...ROUTE, maxVisits },
          { constructor: target(one), toString: target(two), capped },
        );
      case 'choose': {
        const cases = [{ exit: 'valueOf', when: { op: 'over', path: 'count', value: 4 } as const }];
        const kinds = { kind: 'choose', cases, maxVisits } as const;
        return node(name, kinds, { valueOf: target(one), else: target(two), capped });
      }
      case 'each': {
        const body = RUN;
        const over = { $path: 'items' };
        const kinds = { kind: 'each', over, atOnce: 2, body, save: name, maxVisits } as const;
        return node(name, kinds, { done: target(one), capped });
      }
    }
  });
  return { start: target(0), nodes, fields: FIELDS, initial: { count: 0, trail: [] }, perTurn: [] };
}

const ITEMS: Json = ['x', 'y', 'z'];

/** What the function of a node does, in the engine and in the reference. */
function act(name: string, state: JsonObject): { exit: string; patch: JsonObject } {
  const count = Number(state['count']) + 1;
  const trail = Array.isArray(state['trail']) ? state['trail'] : [];
  const exit = count % 2 === 0 ? 'constructor' : 'toString';
  return { exit, patch: { count, trail: [...trail, name], [name]: count } };
}

/** Walks a graph in the simplest readable way. */
function reference(graph: GraphDefinition, shapes: readonly Shape[]): JsonObject {
  const visits = new Map<string, number>();
  let state: JsonObject = { ...graph.initial, items: ITEMS };
  let at = graph.start;
  while (at !== END) {
    const index = graph.nodes.findIndex(({ name }) => name === at);
    const found = graph.nodes[index];
    const { kind, cap } = shapes[index] ?? { kind: 'run', cap: 1 };
    const seen = visits.get(at) ?? 0;
    let exit = 'capped';
    if (seen < cap) {
      visits.set(at, seen + 1);
      const { exit: chosen, patch } = act(at, state);
      exit = { run: 'done', each: 'done', fails: 'failed', route: chosen, choose: 'else' }[kind];
      if (kind === 'choose' && Number(state['count']) > 4) exit = 'valueOf';
      if (kind === 'run' || kind === 'route') state = { ...state, ...patch };
      if (kind === 'each')
        state = {
          ...state,
          [at]: ['x', 'y', 'z'].map((item) => ({ ok: true, value: `${item}!` })),
        };
    }
    at = found?.exits.find(({ name }) => name === exit)?.to ?? END;
  }
  return state;
}

const graphs = fc.array(shape, { minLength: 1, maxLength: NAMES.length });

test.each([false, true])(
  'any graph is walked as its exits say (a new segment at every node: %s)',
  async (isCut) => {
    await fc.assert(
      fc.asyncProperty(graphs, fc.boolean(), async (shapes, reversed) => {
        const graph = graphFrom(shapes);
        const run: Run = { state: waiting(graph) };
        const world: World = {
          callModel: () => Promise.reject(new Error('no model is expected')),
          continueAsNew: async () => {
            run.state = carry(reduce(run.state, { type: 'segment-begun' }));
          },
          runCalls: async (state, calls, finished) => {
            for (const call of reversed ? calls.toReversed() : calls) {
              const name = call.name.slice('node:'.length);
              const kind = shapes[graph.nodes.findIndex((one) => one.name === name)]?.kind;
              finished(call.id, resultOf(kind, { name, call, values: state.graph?.values ?? {} }));
            }
            return null;
          },
          ...(isCut && { segment: () => SHORT }),
        };
        await runLoop(run, effectsOf(run, world));
        expect(getOutcome(run.state)).toMatchObject({ status: 'completed' });
        expect(run.state.graph?.values).toEqual(reference(graph, shapes));
      }),
      { seed: 20261122, numRuns: 300 },
    );
  },
);

/** A run of the graph whose first message waits. */
function waiting(graph: GraphDefinition): RunState {
  const runConfig = { ...config({ graph }), segment: { steps: 1, bytes: 1e9 } };
  const message = { id: '', text: '', turn: 1, input: { items: ITEMS } };
  return reduce(initialState(runConfig), { type: 'message-received', message });
}

function resultOf(
  kind: Shape['kind'] | undefined,
  { name, call, values }: { name: string; call: ToolCall; values: JsonObject },
): Omit<CallResult, 'id' | 'executed'> {
  if (kind === 'fails') return { ok: false, text: 'no' };
  if (kind !== 'each') return { ok: true, text: '', output: { ...act(name, values) } };
  const given = parseJson(call.arguments);
  const item = isObject(given) ? textField(given, 'item') : '';
  return { ok: true, text: '', output: { value: `${item}!` } };
}
