import type { RawEvent } from '../../src/history/history-event.js';

/**
 * What Temporal Cloud bills of these events as actions (docs.temporal.io/cloud/actions): each start of
 * a workflow or a segment, each attempt of an activity, the local activities of a workflow task
 * together, and each timer, signal, update, and write of search attributes. Queries and heartbeats are
 * billed, too, and leave no event; the actions of a called agent are in its own history.
 */
export function actionsOf(events: readonly RawEvent[]): number {
  const localTasks = new Set(
    events.flatMap(({ markerRecordedEventAttributes: marker }) =>
      marker?.markerName === 'core_local_activity'
        ? [String(marker.workflowTaskCompletedEventId)]
        : [],
    ),
  );
  return events.reduce((sum, event) => sum + actionsOfEvent(event), localTasks.size);
}

function actionsOfEvent(event: RawEvent): number {
  const attempts = event.activityTaskStartedEventAttributes?.attempt;
  if (attempts !== undefined && attempts !== null) return attempts;
  const isBilled =
    event.workflowExecutionStartedEventAttributes ??
    event.workflowExecutionSignaledEventAttributes ??
    event.workflowExecutionUpdateAcceptedEventAttributes ??
    event.upsertWorkflowSearchAttributesEventAttributes ??
    event.timerStartedEventAttributes;
  return isBilled ? 1 : 0;
}
