import { isObject } from '../json.js';
import { runGraph, type RunGraph } from '../graph/draw-run.js';
import type { RunState } from '../state.js';
import { visible } from '../text/summaries.js';
import { getOpenBatch } from '../turn.js';
import { findWork } from '../work/work.js';
import { planIn } from './plan.js';
import { actionOf } from './plan-batch.js';

/** The progress of one action of a plan. */
export interface ActionProgress {
  readonly id: string;
  readonly tool: string;
  /** For people. */
  readonly shown: string;
  readonly state: 'planned' | 'waiting' | 'running' | 'asking' | 'done' | 'failed';
}

/** The progress of a run's plan. */
export interface PlanProgress {
  readonly actions: readonly ActionProgress[];
  /** Actions that have succeeded. */
  readonly done: number;
  readonly failed: number;
}

/** The answer to the query `graph`: the run's graph and the progress of its plan. */
export interface GraphView extends RunGraph {
  /** Null without a plan. */
  readonly plan: PlanProgress | null;
}

/**
 * Returns the graph of a run with its plan; null if its agent has none, or if it is not loaded yet.
 */
export function graphView(state: RunState): GraphView | null {
  const graph = runGraph(state);
  return graph && { ...graph, plan: planProgress(state) };
}

/** Returns the progress of a run's plan; null if the run has none. */
export function planProgress(state: RunState): PlanProgress | null {
  const graph = runGraph(state);
  const values = graph?.state.values ?? {};
  const plans = (graph?.definition.nodes ?? []).flatMap((node) =>
    node.kind === 'plan' ? [planIn(values, node.save)] : [],
  );
  const plan = plans.find(({ actions }) => actions.length > 0);
  if (plan === undefined) return null;
  const ended = new Map(
    (graph?.definition.nodes ?? []).flatMap((node) => {
      const saved = node.kind === 'execute' ? values[node.save] : undefined;
      return isObject(saved) ? Object.entries(saved) : [];
    }),
  );
  const actions = plan.actions.map(({ id, tool, shown = tool }): ActionProgress => {
    const result = ended.get(id);
    const over = isObject(result) ? (result['ok'] === true ? 'done' : 'failed') : null;
    return { id, tool, shown, state: over ?? inBatch(state, id) };
  });
  const count = (name: ActionProgress['state']): number =>
    actions.filter((action) => action.state === name).length;
  return { actions, done: count('done'), failed: count('failed') };
}

/** Returns the state of an action according to the open batch. */
function inBatch(state: RunState, id: string): ActionProgress['state'] {
  const batch = getOpenBatch(state);
  const index = batch?.calls.findIndex((call) => call.node && actionOf(call) === id) ?? -1;
  const call = batch?.calls[index];
  if (call === undefined) return 'planned';
  const result = batch?.results[index];
  if (result) return result.ok ? 'done' : 'failed';
  const work = findWork(state, call.id);
  if (work === undefined) return 'waiting';
  return work.request === undefined ? 'running' : 'asking';
}

/** Maximum ids that a line lists for each state. */
const MAX_NAMED = 5;

/** Returns a line such as `4 of 7 done, 1 failed; running a5, a6`; null without a plan. */
export function planLine(state: RunState): string | null {
  const progress = planProgress(state);
  if (progress === null) return null;
  const { actions, done, failed } = progress;
  const named = (which: ActionProgress['state'], words: string): readonly string[] => {
    const ids = actions.filter((action) => action.state === which).map(({ id }) => visible(id));
    if (ids.length === 0) return [];
    const more = ids.length > MAX_NAMED ? `, and ${ids.length - MAX_NAMED} more` : '';
    return [`${words} ${ids.slice(0, MAX_NAMED).join(', ')}${more}`];
  };
  const counts = `${done} of ${actions.length} done${failed === 0 ? '' : `, ${failed} failed`}`;
  return [counts, ...named('running', 'running'), ...named('asking', 'waiting for approval:')].join(
    '; ',
  );
}
