import type { ActivityProblem } from '../../core/failure.js';
import { textField } from '../../core/json.js';
import type { EventOf, InFlight, ProjectionState } from './state.js';

/** What a run is blocked on, by activity type, for activities that are not calls. */
const BLOCKED_AS: Readonly<Record<string, string>> = {
  callModel: 'model',
  retrieveDocuments: 'retrieve',
  archiveMessages: 'archive',
  forkMessages: 'fork',
  loadAgent: 'agent',
};

/** An activity failed for a reason that is fixed outside the run. */
export function blockedBy(
  projection: ProjectionState,
  { id: since }: Pick<EventOf<'failed'>, 'id'>,
  done: InFlight,
  problem: Extract<ActivityProblem, { type: 'blocked' }>,
): void {
  const { reason, message, definition } = problem;
  const offered = definition !== undefined && { definition };
  const name = nameOf(done);
  if (name !== undefined) projection.blocked.set(name, { reason, message, since, ...offered });
}

function nameOf({ activity, call }: InFlight): string | undefined {
  return call?.id ?? BLOCKED_AS[activity];
}

/** Work that is scheduled, but not as a probe, is no longer blocked. */
export function workScheduled(projection: ProjectionState, begun: InFlight): void {
  const name = nameOf(begun);
  if (name !== undefined && begun.input['blocked'] === undefined) projection.blocked.delete(name);
}

/** An activity completed the work that was blocked. */
export function unblockedBy(projection: ProjectionState, { activity }: InFlight): void {
  const name = BLOCKED_AS[activity];
  if (name !== undefined) projection.blocked.delete(name);
}

/** The blob can be read again, so the work that needs it is tried again. */
export function storageRestored(projection: ProjectionState, { input }: InFlight): void {
  projection.blocked.delete(textField(input, 'work'));
}

/** Whether a canceled activity may have been a probe, which `resume` cancels. */
export function mayBeProbe({ blocked }: ProjectionState): boolean {
  return Object.values(BLOCKED_AS).some((name) => blocked.has(name));
}
