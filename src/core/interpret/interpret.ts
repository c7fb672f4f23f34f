import { isLoaded } from '../rules/limits.js';
import { acceptSignal } from '../run/ask.js';
import type { Fact, FactOf, RunEvent, Task } from '../run/events.js';
import { nextAction } from '../run/next-action.js';
import { grantFor } from '../state/consent.js';
import { type RunState, keepsEarlierMeaning } from '../state/state.js';
import { currentNode } from '../state/turn-definition.js';
import { WORK, type Work, callOfWork, findWork } from '../state/work.js';
import { isObject, textField } from '../text/json.js';
import { endEvents, workPlace } from './activity-table.js';
import { passedDeadline } from './calls.js';
import {
  childEnded,
  childExisted,
  messageReceived,
  paused,
  resumed,
  updateEvents,
} from './people.js';

/**
 * Returns the events for `reduce` that a fact causes in a run. Workflows and readers of histories
 * share these rules. The function is pure and never throws for a fact from a history: a fact
 * without meaning produces no events.
 */
export function interpret(state: RunState, fact: Fact): readonly RunEvent[] {
  switch (fact.type) {
    case 'clock':
      return passedDeadline(state, fact.at);
    case 'cancel-requested':
      return [{ type: 'end-requested', by: 'cancelled' }];
    case 'update':
      return updateEvents(state, fact);
    case 'signal': {
      if (fact.name === 'pause') return paused(state, fact);
      if (fact.name === 'resume') return resumed(state, fact);
      if (fact.name !== 'message') return [];
      const earlier = keepsEarlierMeaning(state, fact);
      return messageReceived(state, acceptSignal(state, fact.input, fact.at, earlier), fact);
    }
    case 'scheduled':
      return begin(state, fact);
    case 'completed':
    case 'failed':
    case 'cancelled':
      return endEvents(state, fact);
    case 'child-ended':
      return childEnded(state, fact);
    case 'child-existed':
      return childExisted(state, fact);
    case 'segment-kept':
      return isLoaded(state) ? [{ type: 'segment-kept', at: fact.at }] : [];
  }
}

/** An activity was scheduled, or the run of a called agent was started. */
function begin(state: RunState, { task }: FactOf<'scheduled'>): readonly RunEvent[] {
  const place = workPlace(task);
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

/** The next visit of a node that continues its conversation needs the run of this one. */
function childOf(state: RunState, { activity, input }: Task): Pick<Work, 'child'> {
  const node = currentNode(state);
  if (activity !== 'agent' || node?.kind !== 'agent' || !node.continues) return {};
  return { child: isObject(input) ? textField(input, 'run') : '' };
}

function isAtEnd(state: RunState): boolean {
  return nextAction(state).type === 'finish';
}
