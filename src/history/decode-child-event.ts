import { nameInCalledId } from '../core/calls/idempotency.js';
import { isOutcome, misfitMessage } from '../core/guards/recorded.js';
import type { EventBody, HistoryEvent, RawEvent } from './decode-event.js';
import { decodeFailure, decodeFirst } from './payloads.js';

type ChildEvent = Extract<
  HistoryEvent,
  { type: 'child-started' | 'child-ended' | 'child-existed' }
>;

/** Decodes an event of the run of a called agent; null for all other events. */
export function decodeChildEvent(raw: RawEvent): EventBody<ChildEvent> | null {
  const initiated = raw.startChildWorkflowExecutionInitiatedEventAttributes;
  if (initiated) {
    const child = initiated.workflowId ?? '';
    return { type: 'child-started', call: nameInCalledId(child), child };
  }
  const {
    childWorkflowExecutionCompletedEventAttributes: completed,
    childWorkflowExecutionFailedEventAttributes: failed,
    childWorkflowExecutionCanceledEventAttributes: cancelled,
    childWorkflowExecutionTerminatedEventAttributes: terminated,
    childWorkflowExecutionTimedOutEventAttributes: timedOut,
    startChildWorkflowExecutionFailedEventAttributes: notStarted,
  } = raw;
  if (notStarted)
    return { type: 'child-existed', call: nameInCalledId(notStarted.workflowId ?? '') };
  const ended = completed ?? failed ?? cancelled ?? terminated ?? timedOut;
  const child = ended?.workflowExecution?.workflowId;
  if (child === undefined || child === null) return null;
  const end = {
    type: 'child-ended',
    call: nameInCalledId(child),
    cancelled: Boolean(cancelled),
  } as const;
  if (completed) {
    const result = decodeFirst(completed.result?.payloads);
    return { ...end, result, message: isOutcome(result) ? '' : misfitMessage('agent', result) };
  }
  if (cancelled) return { ...end, result: decodeFirst(cancelled.details?.payloads), message: '' };
  if (failed) {
    const { details, message } = decodeFailure(failed.failure);
    return { ...end, result: details[0] ?? null, message };
  }
  return { ...end, result: null, message: endMessage({ terminated, timedOut }) };
}

/** Returns the message of the SDK, which the workflow reads too. */
function endMessage(event: { terminated: unknown; timedOut: unknown }): string {
  if (event.terminated) return 'Terminated';
  return event.timedOut ? 'Workflow execution timed out' : '';
}
