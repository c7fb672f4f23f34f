import { nameInCalledId } from '../core/calls/idempotency.js';
import { isOutcome, misfitMessage } from '../core/guards/recorded.js';
import type { RawEvent, HistoryEvent } from './decode-event.js';
import { readFailure, readFirst } from './payloads.js';

type ChildFact = Extract<HistoryEvent, { type: 'child-started' | 'child-ended' | 'child-existed' }>;
type Told<F = ChildFact> = F extends ChildFact ? Omit<F, 'id' | 'at'> : never;

/** What an event tells of an agent that the run has called, if it does. */
export function decodeChildEvent(event: RawEvent): Told | null {
  const initiated = event.startChildWorkflowExecutionInitiatedEventAttributes;
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
  } = event;
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
    const result = readFirst(completed.result?.payloads);
    return { ...end, result, message: isOutcome(result) ? '' : misfitMessage('agent', result) };
  }
  if (cancelled) return { ...end, result: readFirst(cancelled.details?.payloads), message: '' };
  if (failed) {
    const { details, message } = readFailure(failed.failure);
    return { ...end, result: details[0] ?? null, message };
  }
  return { ...end, result: null, message: fate({ terminated, timedOut }) };
}

/** Returns the SDK's own words, which the workflow reads too. */
function fate(event: { terminated: unknown; timedOut: unknown }): string {
  if (event.terminated) return 'Workflow execution terminated';
  return event.timedOut ? 'Workflow execution timed out' : '';
}
