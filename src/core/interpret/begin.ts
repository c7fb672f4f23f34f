import type { RunEvent } from '../events.js';
import { workOf, type FactOf } from '../facts.js';
import { isObject } from '../json.js';
import type { RunState } from '../state.js';
import { grantFor } from '../requests/grants.js';
import { callOfWork, findWork, type Work } from '../work/work.js';

/** An activity was scheduled, or the run of a called agent was started. */
export function begin(state: RunState, { task }: FactOf<'scheduled'>): readonly RunEvent[] {
  const place = workOf(task);
  if (place === null) return [];
  const { name, as } = place;
  const { block, resumed: _, startAt: __, ...before }: Partial<Work> = findWork(state, name) ?? {};
  const call = callOfWork(state, name);
  const grant = before.approved || call === undefined ? undefined : grantFor(state, call);
  const cut = isObject(task.input) ? task.input['compact'] : undefined;
  const work: Work = {
    ...before,
    name,
    // An attempt shows that the work is no longer blocked; a probe does not.
    ...(as !== 'attempt' && block && { block }),
    ...(typeof cut === 'number' && { cut }),
    ...(grant && { grant: grant.id }),
    phase: 'in-flight',
    as,
  };
  return [{ type: 'work-changed', work }];
}
