import type { Client } from '@temporalio/client';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { History, RawEvent } from '../../src/history/history-event.js';
import { isObject } from '../../src/core/text/json.js';

/** The state of a run when it asked its model for the next step. */
export interface StepMark {
  /** Unix time in milliseconds, by the server's clock. */
  readonly atMs: number;
  /** The events and bytes of the history so far, over all segments, as the server counts them. */
  readonly bytes: number;
}

interface Segment {
  readonly runId: string;
  readonly history: History;
  readonly bytes: number;
}

/**
 * Returns the mark of each number of completed steps. For an open run, it covers the steps so far.
 */
export async function stepMarks(
  client: Client,
  id: string,
): Promise<ReadonlyMap<number, StepMark>> {
  const marks = new Map<number, StepMark>();
  let before = 0;
  for (const { history, bytes } of await segmentsOf(client, id)) {
    let task = 0;
    for (const event of history.events ?? []) {
      task = Number(event.workflowTaskStartedEventAttributes?.historySizeBytes ?? task);
      const steps = stepsDone(event);
      // A step that another activity retried is still the same step.
      if (steps !== null && !marks.has(steps)) {
        marks.set(steps, { atMs: decodeEvent(event).at, bytes: before + task });
      }
    }
    before += bytes;
  }
  return marks;
}

/** Returns the cost per step between two marks. */
export function perStep(
  marks: ReadonlyMap<number, StepMark>,
  { from, to }: { readonly from: number; readonly to: number },
): { readonly ms: number; readonly bytes: number } {
  const [first, last] = [marks.get(from), marks.get(to)];
  if (first === undefined || last === undefined) throw new Error(`no steps ${from} to ${to}`);
  const steps = to - from;
  return { ms: (last.atMs - first.atMs) / steps, bytes: (last.bytes - first.bytes) / steps };
}

/** Oldest first. */
export async function segmentsOf(client: Client, id: string): Promise<readonly Segment[]> {
  const segments: Segment[] = [];
  let runId: string | undefined = (await client.workflow.getHandle(id).describe()).runId;
  while (runId !== undefined && runId !== '') {
    const handle = client.workflow.getHandle(id, runId);
    const history: History = await handle.fetchHistory();
    const { historySize = Number.NaN } = await handle.describe();
    segments.unshift({ runId, history, bytes: historySize });
    const [started] = history.events ?? [];
    runId = started?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? undefined;
  }
  return segments;
}

/** Null for an event that does not begin a step. */
function stepsDone(event: RawEvent): number | null {
  if (event.activityTaskScheduledEventAttributes === null) return null;
  const fact = decodeEvent(event);
  if (fact.type !== 'scheduled' || fact.activity !== 'callModel') return null;
  const { input } = fact;
  return isObject(input) && input['compact'] === undefined ? Number(input['step']) - 1 : null;
}
