import type { RunEvent } from '../events.js';
import { workOf, type FactOf, type Task } from '../facts.js';
import { currentNode } from '../graph/node-tool.js';
import { isObject, textField } from '../json.js';
import type { RunState } from '../state.js';
import { grantFor } from '../requests/grants.js';
import { nextAction } from '../next-action.js';
import { callOfWork, findWork, WORK, type Work } from '../work/work.js';

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
    ...childOf(state, task),
    ...(name === WORK.archive && isAtEnd(state) && { last: true as const }),
    phase: 'in-flight',
    as,
  };
  return [{ type: 'work-changed', work }];
}

/** The next visit of a node that goes on with its conversation needs the run of this one. */
function childOf(state: RunState, { activity, input }: Task): Pick<Work, 'child'> {
  const node = currentNode(state);
  if (activity !== 'agent' || node?.kind !== 'agent' || !node.continues) return {};
  return { child: isObject(input) ? textField(input, 'run') : '' };
}

function isAtEnd(state: RunState): boolean {
  return nextAction(state).type === 'finish';
}
