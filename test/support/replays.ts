import { expect } from 'vitest';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { History } from '../../src/history/history-event.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { recordEvents } from '../../src/recordings/record-histories.js';
import { blobsIn, createRecording } from '../../src/recordings/recording.js';
import { replayAll, type ReplayedAnswer } from './answer-by-replay.js';

/** A history with the id of its workflow; `name` is for display. */
export interface NamedHistory {
  readonly name: string;
  readonly workflowId: string;
  readonly history: History;
}

/** Returns the faults in the answer of a run, one line for each. */
type CheckAnswer = (answer: ReplayedAnswer) => readonly string[];

interface KeptHistory extends NamedHistory {
  readonly check?: CheckAnswer;
}

/** Histories of this file's tests that have not been replayed yet, by run and length. */
const stored = new Map<string, KeptHistory>();

/**
 * Stores a history until the end of the test file, which fails if the history does not replay, or
 * if `check` finds a fault in the run's answer after it. One replay worker per file costs a third
 * of one per history.
 */
export function replayLater(history: History, workflowId: string, check?: CheckAnswer): void {
  const key = `${runIdOf(history)} ${history.events?.length}`;
  const name = expect.getState().currentTestName ?? 'unnamed';
  stored.set(key, { name, workflowId, history, ...stored.get(key), ...(check && { check }) });
}

/**
 * Replays the stored histories, and records their runs. Throws if the current workflow code would act differently in one,
 * or if a run's answer differs from that of a reader of its history.
 */
export async function expectKeptReplays(): Promise<void> {
  const histories = [...stored.values()];
  stored.clear();
  for (const { workflowId, history } of histories) expectRecorded(workflowId, history);
  const faults = await replayFaults(histories);
  expect(Object.fromEntries(faults)).toEqual({});
}

/** Fails if a run cannot be recorded, or if its recording cannot be read again. */
function expectRecorded(id: string, { events }: History): void {
  const run = recordEvents({ id, segments: [(events ?? []).map(decodeEvent)] });
  // No worker has begun the run, or its texts are elsewhere.
  if (run === null || blobsIn(run).size > 0) return;
  const text = JSON.stringify(createRecording([run], {}));
  expect(JSON.stringify(parseRecording(JSON.parse(text)))).toBe(text);
}

/** Replays histories with the current workflow code; returns the errors, by name. */
export async function replayFaults(
  histories: readonly KeptHistory[],
): Promise<ReadonlyMap<string, string>> {
  const faults = new Map<string, string>();
  if (histories.length === 0) return faults;
  /**
   * The histories that are still to be answered. A run that was reset begins with the id of the
   * earlier one.
   */
  const open = [...histories];
  await replayAll(histories, {
    answered(runId, answer) {
      const index = open.findIndex(({ history }) => runIdOf(history) === runId);
      const [one] = index < 0 ? [] : open.splice(index, 1);
      const lines = one?.check?.(answer) ?? [];
      if (one !== undefined && lines.length > 0) faults.set(one.name, lines.join('\n'));
    },
    failed(index, message) {
      const replayed = histories[index];
      if (replayed) faults.set(replayed.name, `${message}\n${eventsOf(replayed.history)}`);
    },
  });
  return faults;
}

function runIdOf({ events }: History): string {
  return events?.[0]?.workflowExecutionStartedEventAttributes?.originalExecutionRunId ?? '';
}

/** The events of a history in one line: without them, a rare divergence cannot be explained. */
function eventsOf({ events }: History): string {
  const described = (events ?? []).map((event) => {
    const accepted = event.workflowExecutionUpdateAcceptedEventAttributes;
    const after = accepted ? ` after ${String(accepted.acceptedRequestSequencingEventId)}` : '';
    return `${String(event.eventId)} ${String(event.eventType)}${after}`;
  });
  return described.join(', ').replaceAll('EVENT_TYPE_', '');
}
