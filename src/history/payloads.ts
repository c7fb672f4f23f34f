import type { Payload } from '@temporalio/common';
import { payloadValue } from '../temporal/server-answers.js';
import type { Failure } from '../core/facts.js';
import type { RawEvent } from './history-event.js';

type RawFailure = NonNullable<
  NonNullable<RawEvent['activityTaskFailedEventAttributes']>['failure']
>;

/** Returns the innermost failure: the failure of an activity wraps the error of its code. */
export function decodeFailure(failure: RawFailure | null | undefined): Failure {
  let inner = failure;
  while (inner?.cause && !inner.applicationFailureInfo) inner = inner.cause;
  const timedOut = Boolean(inner?.timeoutFailureInfo);
  const details = decodeAll(inner?.applicationFailureInfo?.details?.payloads);
  const type = inner?.applicationFailureInfo?.type ?? '';
  return { message: inner?.message ?? '', type, timedOut, details };
}

export function decodeFields(fields: Record<string, Payload>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, payloadValue(value)]),
  );
}

export function decodeFirst(payloads: readonly Payload[] | null | undefined): unknown {
  return payloadValue(payloads?.[0]);
}

export function decodeAll(payloads: readonly Payload[] | null | undefined): readonly unknown[] {
  return (payloads ?? []).map(payloadValue);
}
