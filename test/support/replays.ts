import { expect } from 'vitest';
import type { History } from '../../src/history/history-event.js';
import { replayAll, type ReplayedAnswer } from './answer-by-replay.js';

/** A history with the id of its workflow; `name` is for people. */
export interface NamedHistory {
  readonly name: string;
  readonly workflowId: string;
  readonly history: History;
}

/** Returns what is wrong with the answer of a run, one line for each fault. */
type CheckAnswer = (answer: ReplayedAnswer) => readonly string[];

interface KeptHistory extends NamedHistory {
  readonly check?: CheckAnswer;
}

/** Histories of this file's tests that have not been replayed yet, by run and length. */
const kept = new Map<string, KeptHistory>();

/**
 * Keeps a history until the end of the test file, which fails if the history does not replay, or if
 * `check` finds a fault in what the run says after it. One replay worker for a file costs a third of one
 * for each history.
 */
export function replayLater(history: History, workflowId: string, check?: CheckAnswer): void {
  const key = `${runIdOf(history)} ${history.events?.length}`;
  const name = expect.getState().currentTestName ?? 'unnamed';
  kept.set(key, { name, workflowId, history, ...kept.get(key), ...(check && { check }) });
}

/**
 * Replays the kept histories. Throws if the current workflow code would act differently in one, or if a
 * run says something else than a reader of its history.
 */
export async function expectKeptReplays(): Promise<void> {
  const histories = [...kept.values()];
  kept.clear();
  const faults = await replayFaults(histories);
  expect(Object.fromEntries(faults)).toEqual({});
}

/** Replays histories with the current workflow code; returns what went wrong, by name. */
export async function replayFaults(
  histories: readonly KeptHistory[],
): Promise<ReadonlyMap<string, string>> {
  const faults = new Map<string, string>();
  if (histories.length === 0) return faults;
  /** What is still to be answered. A run that was reset begins with the id of the earlier one. */
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

/** The events of a history in one line: without them, a divergence that comes rarely explains nothing. */
function eventsOf({ events }: History): string {
  const described = (events ?? []).map((event) => {
    const accepted = event.workflowExecutionUpdateAcceptedEventAttributes;
    const after = accepted ? ` after ${String(accepted.acceptedRequestSequencingEventId)}` : '';
    return `${String(event.eventId)} ${String(event.eventType)}${after}`;
  });
  return described.join(', ').replaceAll('EVENT_TYPE_', '');
}
