import { type RunStatus, type RunStatusName, isOpenStatus } from './status.js';

/** Returns a status for people: `completed (answer)`, `blocked (provider_auth)`, `working`. */
export function statusText({
  status,
  reason,
}: {
  readonly status: RunStatusName;
  readonly reason: string | null;
}): string {
  return withReason(status, ownReason({ status, reason }));
}

/** Returns a status with its reason as people see it. */
export function withReason(status: RunStatusName, reason: string | null): string {
  return reason === null || reason === status ? status : `${status} (${reason})`;
}

/** What people see as the reason for the status of a run that only works through a blocked run below it. */
const BLOCKED_BELOW = 'blocked below';

/** Returns the reason for a status; null for an open run whose reason is that of its last turn. */
function ownReason({
  status,
  reason,
}: {
  readonly status: RunStatusName;
  readonly reason: string | null;
}): string | null {
  const isOwn = !isOpenStatus(status) || status === 'blocked' || status === 'waiting_decision';
  return isOwn ? reason : null;
}

/** What people see as the reason while a worker has yet to check the decisions about all requests of a run. */
const CHECKING = 'a decision is being checked';

/** Returns what people see as the reason for the status of a run; null if there is none. */
export function shownReason({
  status,
  reason,
  blockedBelow,
  checking,
}: {
  readonly status: RunStatusName;
  readonly reason: string | null;
  /** The blocked runs below it; absent if there are none. */
  readonly blockedBelow?: readonly unknown[] | undefined;
  /** Whether a worker has yet to check the decisions about all its requests. */
  readonly checking?: boolean | undefined;
}): string | null {
  if (status === 'working' && blockedBelow !== undefined) return BLOCKED_BELOW;
  if (status === 'waiting_decision' && checking === true) return CHECKING;
  return ownReason({ status, reason });
}

/** Whether a worker has yet to check the decisions about all requests of a run. */
export function isChecking({ pending }: Pick<RunStatus, 'pending'>): boolean {
  return pending.length > 0 && pending.every(({ checking }) => checking === true);
}
