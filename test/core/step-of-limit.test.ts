import { expect, test } from 'vitest';
import { currentDetails } from '../../src/core/run/details.js';
import { runStatus } from '../../src/core/run/status.js';
import type { RunState } from '../../src/core/state/state.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { currentStep, stepOfLimit, stepsOf } from '../../src/core/state/turn-definition.js';
import { asking, graphOfNodes, mail, runNode } from './graph/fixture.js';
import { begun, config } from '../support/scripts.js';

function graphRun(graph: typeof mail): RunState {
  const state = begun(config({ graph }));
  const { limits } = state.config;
  const turn = { ...limits.turn, steps: 2 };
  return {
    ...state,
    config: { ...state.config, limits: { ...limits, turn } },
    graph: asking,
    turn: { ...state.turn, spent: { ...state.turn.spent, steps: 1 } },
  };
}

const decide = { name: 'decide', kind: 'decide', tools: [], exits: [] } as const;

test('a step of a graph is shown beside the replies that its limit counts', () => {
  const state = graphRun(graphOfNodes('load', [...mail.nodes, decide]));
  // Visits of load, ask (2), and send, and one reply.
  expect(stepsOf(state)).toBe(5);
  expect(stepOfLimit(state, stepsOf(state))).toBe('5 (replies: 1 of 2)');
  const details = currentDetails(state, runStatus(state, { ended: null, run: 'x' }) as RunStatus);
  expect(details.replaceAll('\\', '')).toContain('1, 5 (replies: 1 of 2)');
});

test('a graph that calls no model of its own has steps, and no limit of them', () => {
  const state = graphRun(graphOfNodes('load', [runNode('load', 'end'), ...mail.nodes.slice(1)]));
  expect(stepOfLimit(state, 4)).toBe('4');
});

test('a step of an agent is never beyond its limit', () => {
  const state = begun(config());
  const cap = state.config.limits.turn.steps ?? 0;
  const at = (steps: number): RunState => ({
    ...state,
    turn: { ...state.turn, spent: { ...state.turn.spent, steps } },
  });
  const shown = (steps: number): string => stepOfLimit(at(steps), currentStep(at(steps)));
  expect([shown(0), shown(cap - 1), shown(cap)]).toEqual([
    `1 of ${cap}`,
    `${cap} of ${cap}`,
    `${cap} of ${cap}`,
  ]);
});
