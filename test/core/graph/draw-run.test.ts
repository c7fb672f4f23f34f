import { expect, test } from 'vitest';
import { unloadedConfig } from '../../../src/core/rules/limits.js';
import { drawGraph, drawLoop, drawRun, runGraph } from '../../../src/core/graph/draw.js';
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
  expect(drawRun(state, 'waits here')).toEqual(
    drawGraph(mail, { state: asking, here: 'waits here' }),
  );
});

test('a run before its first turn is drawn without marks', () => {
  expect(runGraph(pinned)).toBe(null);
  expect(drawRun(pinned, 'x')).toEqual(drawGraph(mail));
});

test('a run of an agent has no graph, and the built-in loop is drawn', () => {
  expect(runGraph(plain)).toBe(null);
  expect(drawRun(plain, 'x')).toEqual(drawLoop(definition));
});
