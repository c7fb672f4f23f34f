import type { RunEvent } from '../events.js';
import { workOf, type FactOf } from '../facts.js';
import { isObject } from '../json.js';
import type { RunState } from '../state.js';
import { findWork, type Work } from '../work/work.js';

/** An activity was scheduled, or the run of a called agent was started. */
export function begin(state: RunState, { task }: FactOf<'scheduled'>): readonly RunEvent[] {
  const place = workOf(task);
  if (place === null) return [];
  const { name, as } = place;
  const { block, resumed: _, startAt: __, ...before } = findWork(state, name) ?? {};
  const cut = isObject(task.input) ? task.input['compact'] : undefined;
  const work: Work = {
    ...before,
    name,
    // An attempt shows that the work is no longer blocked; a probe does not.
    ...(as !== 'attempt' && block && { block }),
    ...(typeof cut === 'number' && { cut }),
    phase: 'in-flight',
    as,
  };
  return [{ type: 'work-changed', work }];
}
