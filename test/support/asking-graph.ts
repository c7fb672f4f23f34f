import type { GraphNode } from '../../src/core/definition/node-kinds.js';
import type { JsonObject } from '../../src/core/text/json.js';
import { planIn, planValue, type PlannedAction } from '../../src/core/plan/plan.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { node } from './graph-agent.js';
import { afterNextAction } from './pending-call.js';
import { config, toolDefinition } from './scripts.js';

/** The id of the call that asks. */
export const CALL = 'node_ask_1_0';
export const action = (id: string): PlannedAction => ({ id, tool: 'put', arguments: {} });

/** A run whose graph waits for an answer at its first node. */
export function waiting(
  ask: Partial<Extract<GraphNode, { kind: 'confirm' }>>,
  {
    decisions,
    open = true,
    actions = [action('a1'), action('a2')],
    exits: more = {},
  }: {
    decisions?: { mayDecide: true };
    open?: boolean;
    actions?: readonly PlannedAction[];
    exits?: Readonly<Record<string, string>>;
  } = {},
): RunState {
  const exits = { yes: 'end', no: 'end', some: 'end', edit: 'ask', ...more };
  const nodes = [node('ask', { kind: 'confirm', show: 'Send it?', ...ask }, exits)];
  const initial: JsonObject = { plan: planValue({ actions, done: [], asks: false }) };
  const graph = { start: 'ask', nodes, fields: ['plan'], initial, perTurn: [] };
  const made = config({ graph, tools: [toolDefinition('put', 'keyed')] });
  const message = { id: 'm', text: 'go', turn: 1 };
  const state = [
    { type: 'message-received', message } as const,
    { type: 'turn-begun', at: 0 } as const,
    { type: 'node-begun', at: 0 } as const,
  ].reduce(reduce, initialState({ ...made, ...(decisions && { decisions }) }, { open }));
  return afterNextAction(state, 5);
}

/** Returns the ids of the actions that are left in the plan. */
export const actions = (state: RunState): readonly string[] =>
  planIn(state.graph?.values ?? {}, 'plan').actions.map(({ id }) => id);
