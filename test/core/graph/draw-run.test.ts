import { expect, test } from 'vitest';
import { unloadedConfig } from '../../../src/core/rules/limits.js';
import { itemsByNode } from '../../../src/core/graph/items.js';
import { drawGraph, drawLoop, drawRun, toMermaid } from '../../../src/core/graph/draw.js';
import { runGraph } from '../../../src/core/graph/describe.js';
import { initialState, type RunState } from '../../../src/core/state/state.js';
import { asking, mail } from './fixture.js';

const plain = initialState(unloadedConfig('mail'), { open: false, startedAt: 0 });
const { definition } = plain.config;
const pinned: RunState = {
  ...plain,
  config: { ...plain.config, definition: { ...definition, graph: mail } },
};

test('a run in a graph is drawn with its visits', () => {
  const state = { ...pinned, graph: asking };
  expect(runGraph(state)).toEqual({ definition: mail, state: asking });
  expect(drawRun(state, { here: 'waits here', waited: new Map() })).toEqual(
    drawGraph(mail, { state: asking, here: 'waits here' }),
  );
});

test('the items of an `each` are drawn with their failures, and times without waits for people', () => {
  const graph = {
    start: 'all',
    nodes: [
      {
        kind: 'each',
        name: 'all',
        save: 'list',
        atOnce: 1,
        body: { kind: 'run' },
        exits: [{ name: 'done', to: 'end' }],
      },
    ],
  } as never;
  const taken = [{ exit: 'done', count: 1 }];
  const state: RunState = {
    ...plain,
    config: { ...plain.config, definition: { ...definition, graph } },
    graph: {
      values: {
        list: [
          { ok: true, value: 1 },
          { ok: false, error: { type: 'declined' } },
        ],
      },
      at: null,
      visited: [{ node: 'all', inTurn: 1, total: 1, ms: 9_000, taken }],
    },
  };
  const drawn = drawGraph(graph, {
    state: state.graph ?? asking,
    items: itemsByNode(state),
    waited: new Map([['all', 8_000]]),
  });
  expect(drawn.nodes.find(({ name }) => name === 'all')).toMatchObject({
    ms: 1_000,
    items: { ended: 2, failed: 1, total: 2 },
  });
  expect(toMermaid(drawn)).toContain('1×, 1.0 s<br/>2 of 2 items, 1 failed');
});

test('a run before its first turn is drawn without marks', () => {
  expect(runGraph(pinned)).toBe(null);
  expect(drawRun(pinned, { here: 'x', waited: new Map() })).toEqual(drawGraph(mail));
});

test('a run of an agent has no graph, and the built-in loop is drawn', () => {
  expect(runGraph(plain)).toBe(null);
  expect(drawRun(plain, { here: 'x', waited: new Map() })).toEqual(drawLoop(definition));
});
