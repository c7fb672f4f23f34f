import { expect, test } from 'vitest';
import { describeGraph } from '../../../src/core/graph/describe.js';
import { asking, graphOfNodes, mail, runNode } from './fixture.js';

test('a run at a node is described by node, visit, time, and its actions in the turn', () => {
  expect(describeGraph({ definition: mail, state: asking }, 13_000)).toEqual([
    'node ask, visit 2, for 3.0 s',
    'done: load, sort, ask, send',
  ]);
});

test('the first visit has no number, and a label follows the name', () => {
  const state = { values: {}, at: { node: 'load', visit: 1, since: 5_000 }, visited: [] };
  expect(describeGraph({ definition: mail, state }, 5_000)).toEqual([
    'node load (load the mail), for 0.0 s',
  ]);
});

test('between turns only the last turn is described, and a new run not at all', () => {
  const visited = asking.visited.map((one) => ({ ...one, inTurn: one.node === 'load' ? 2 : 0 }));
  const state = { ...asking, at: null, visited };
  expect(describeGraph({ definition: mail, state }, 0)).toEqual(['done: load 2×']);
  expect(
    describeGraph({ definition: mail, state: { values: {}, at: null, visited: [] } }, 0),
  ).toEqual([]);
});

test('many nodes are truncated to the newest, and hidden characters are shown', () => {
  const names = Array.from({ length: 11 }, (_, index) => `n${index}`);
  const definition = graphOfNodes('n0', [runNode('n0', 'end', 'a\u202eb\nc')]);
  const visited = names.map((node) => ({ node, inTurn: 1, total: 1, ms: 0, taken: [] }));
  const at = { node: 'n0', visit: 2, since: 0 };
  expect(describeGraph({ definition, state: { values: {}, at, visited } }, 0)).toEqual([
    String.raw`node n0 (a\u202eb c), visit 2, for 0.0 s`,
    'done: 2 more, n3, n4, n5, n6, n7, n8, n9, n10',
  ]);
});
