import { WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { RefusalReason } from '../core/requests/decision.js';

/** The type of the failure with which a run refuses a decision; its first detail is the reason. */
const REFUSED = 'Refused';

/** All reasons; the record type makes the compiler report a missing one. */
const REASONS: Readonly<Record<RefusalReason, true>> = {
  malformed: true,
  unknown_request: true,
  decided: true,
  expired: true,
  wrong_digest: true,
  not_offered: true,
  not_a_decider: true,
  checking: true,
  too_large: true,
  unclear: true,
  unbound: true,
};

/**
 * Returns why a run refused a decision. Returns null for any other error, and for a reason that
 * this version does not know, such as one of a newer worker.
 */
export function refusalReason(error: unknown): RefusalReason | null {
  if (!(error instanceof WorkflowUpdateFailedError)) return null;
  const { cause } = error;
  if (!(cause instanceof ApplicationFailure) || cause.type !== REFUSED) return null;
  const [reason]: readonly unknown[] = cause.details ?? [];
  return isReason(reason) ? reason : null;
}

function isReason(value: unknown): value is RefusalReason {
  return typeof value === 'string' && Object.hasOwn(REASONS, value);
}
