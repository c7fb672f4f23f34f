import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import type { RawEvent } from './decode-event.js';

type Failure = NonNullable<
  NonNullable<RawEvent['activityTaskFailedEventAttributes']>['failure']
>;

export interface EventFailure {
  readonly message: string;
  readonly timedOut: boolean;
  readonly details: readonly unknown[];
}

/** The innermost failure: an activity's wraps what its code threw. */
export function readFailure(failure: Failure | null | undefined): EventFailure {
  let inner = failure;
  while (inner?.cause && !inner.applicationFailureInfo) inner = inner.cause;
  const timedOut = Boolean(inner?.timeoutFailureInfo);
  const details = (inner?.applicationFailureInfo?.details?.payloads ?? []).map(read);
  return { message: inner?.message ?? '', timedOut, details };
}

export function readAll(fields: Record<string, Payload>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, read(value)]));
}

export function readFirst(payloads: readonly Payload[] | null | undefined): unknown {
  return read(payloads?.[0]);
}

export function read(payload: Payload | null | undefined): unknown {
  if (!payload) return null;
  try {
    return defaultPayloadConverter.fromPayload(payload);
  } catch {
    return null;
  }
}
