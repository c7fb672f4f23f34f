import type { HistoryEvent, HistoryFact } from './history-facts.js';
import { readFailure, readFirst } from './payloads.js';

type ChildFact = Extract<HistoryFact, { type: 'child-started' | 'child-ended' }>;
type Told<F = ChildFact> = F extends ChildFact ? Omit<F, 'id' | 'at'> : never;

/** What an event tells of an agent that the run has called, if it does. */
export function childFact(event: HistoryEvent): Told | null {
  const initiated = event.startChildWorkflowExecutionInitiatedEventAttributes;
  if (initiated) {
    const child = initiated.workflowId ?? '';
    return { type: 'child-started', call: callOf(child), child };
  }
  const {
    childWorkflowExecutionCompletedEventAttributes: completed,
    childWorkflowExecutionFailedEventAttributes: failed,
    childWorkflowExecutionCanceledEventAttributes: cancelled,
    childWorkflowExecutionTerminatedEventAttributes: terminated,
    childWorkflowExecutionTimedOutEventAttributes: timedOut,
    startChildWorkflowExecutionFailedEventAttributes: notStarted,
  } = event;
  const ended = completed ?? failed ?? cancelled ?? terminated ?? timedOut;
  const child = ended?.workflowExecution?.workflowId ?? notStarted?.workflowId;
  if (child === undefined || child === null) return null;
  const end = { type: 'child-ended', call: callOf(child), cancelled: Boolean(cancelled) } as const;
  if (completed) return { ...end, result: readFirst(completed.result?.payloads), message: '' };
  if (cancelled) return { ...end, result: readFirst(cancelled.details?.payloads), message: '' };
  if (failed) {
    const { details, message } = readFailure(failed.failure);
    return { ...end, result: details[0] ?? null, message };
  }
  return { ...end, result: null, message: fate({ terminated, timedOut }) };
}

/** The words of the SDK, in which the workflow itself hears of it. */
function fate(event: { terminated: unknown; timedOut: unknown }): string {
  if (event.terminated) return 'Workflow execution terminated';
  return event.timedOut ? 'Workflow execution timed out' : 'Workflow execution already started';
}

/** A child's workflow id is its caller's and the id of the call. */
function callOf(child: string): string {
  return child.slice(child.lastIndexOf('/') + 1);
}
