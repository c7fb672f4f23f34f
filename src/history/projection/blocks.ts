import type { ActivityProblem } from '../../core/failure.js';
import { textField } from '../../core/json.js';
import type { EventOf, InFlight, ProjectionState } from './state.js';

/** Activity type → what its run is blocked on, where that is no call. */
const BLOCKED_AS: Readonly<Record<string, string>> = {
  callModel: 'model',
  retrieveDocuments: 'retrieve',
  keepMessages: 'archive',
  forkMessages: 'fork',
  loadAgent: 'agent',
};

/** An activity failed for a reason that is fixed from outside. */
export function blockedBy(
  told: ProjectionState,
  { id: since }: Pick<EventOf<'failed'>, 'id'>,
  done: InFlight,
  problem: Extract<ActivityProblem, { type: 'blocked' }>,
): void {
  const { reason, message, definition } = problem;
  const offered = definition !== undefined && { definition };
  const name = nameOf(done);
  if (name !== undefined) told.blocked.set(name, { reason, message, since, ...offered });
}

function nameOf({ activity, call }: InFlight): string | undefined {
  return call?.id ?? BLOCKED_AS[activity];
}

/** Work that is not scheduled as a probe is no longer blocked. */
export function triedAgain(told: ProjectionState, begun: InFlight): void {
  const name = nameOf(begun);
  if (name !== undefined && begun.input['blocked'] === undefined) told.blocked.delete(name);
}

/** An activity brought what its block stood in the way of. */
export function unblockedBy(told: ProjectionState, { activity }: InFlight): void {
  const name = BLOCKED_AS[activity];
  if (name !== undefined) told.blocked.delete(name);
}

/** The blob can be read again: the work that needs it is tried again. */
export function storageBack(told: ProjectionState, { input }: InFlight): void {
  told.blocked.delete(textField(input, 'work'));
}

/** Whether an activity that was canceled can have been a probe, which `resume` cancels. */
export function isProbed({ blocked }: ProjectionState): boolean {
  return Object.values(BLOCKED_AS).some((name) => blocked.has(name));
}
