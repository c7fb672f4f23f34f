import type { EventBody, HistoryEvent, RawEvent } from './decode-event.js';
import { decodeFailure, decodeFirst, decodePayload } from './payloads.js';

type EndEvent = Extract<HistoryEvent, { type: 'ended' }>;

/** Decodes the last event of a segment; null for all other events. */
export function decodeEndEvent(raw: RawEvent): EventBody<EndEvent> | null {
  const completed = raw.workflowExecutionCompletedEventAttributes;
  if (completed) {
    return { type: 'ended', how: 'completed', result: decodeFirst(completed.result?.payloads) };
  }
  const failed = raw.workflowExecutionFailedEventAttributes;
  if (failed) {
    const failure = decodeFailure(failed.failure);
    return { type: 'ended', how: 'failed', result: failure.details[0] ?? null, failure };
  }
  const cancelled = raw.workflowExecutionCanceledEventAttributes;
  if (cancelled) {
    return { type: 'ended', how: 'cancelled', result: decodeFirst(cancelled.details?.payloads) };
  }
  if (raw.workflowExecutionTerminatedEventAttributes) {
    return { type: 'ended', how: 'terminated', result: null };
  }
  if (raw.workflowExecutionTimedOutEventAttributes) {
    return { type: 'ended', how: 'timed-out', result: null };
  }
  const continued = raw.workflowExecutionContinuedAsNewEventAttributes;
  const [, carried] = continued?.input?.payloads ?? [];
  return continued
    ? {
        type: 'ended',
        how: 'continued',
        result: continued.newExecutionRunId,
        carried: decodePayload(carried),
      }
    : null;
}
