import type { WorkflowHandle } from '@temporalio/client';
import type { WorkflowSerializationContext } from '@temporalio/common';

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
/** An event of a history, with payloads as the server has them. */
export type RawHistoryEvent = NonNullable<History['events']>[number];

/** The context of payloads that the SDK's core writes itself, past every codec. */
export const OF_CORE = 'core';
/** Whose a payload in a history is. */
export type PayloadContext = WorkflowSerializationContext | typeof OF_CORE;

/** Returns the details that the SDK's core writes into the markers of patches and local activities. */
export function payloadsOfCore({
  markerRecordedEventAttributes: marker,
}: RawHistoryEvent): readonly object[] {
  if (marker?.markerName?.startsWith('core_') !== true) return [];
  const details = Object.entries(marker.details ?? {});
  return details.flatMap(([name, payloads]) => (name === 'result' ? [] : [payloads]));
}
