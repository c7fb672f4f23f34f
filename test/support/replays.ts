import { Worker } from '@temporalio/worker';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import { expect } from 'vitest';
import type { History } from '../../src/history/decode-event.js';
import { sourceBundle } from './bundle.js';

/** A history with the id of its workflow; `name` is for people. */
export interface NamedHistory {
  readonly name: string;
  readonly workflowId: string;
  readonly history: History;
}

/** Histories of this file's tests that have not been replayed yet. */
const kept: NamedHistory[] = [];

/**
 * Keeps a history until the end of the test file, which fails if the history does not replay. One
 * replay worker for a file costs a third of one for each history.
 */
export function replayLater(history: History, workflowId: string): void {
  kept.push({ workflowId, history, name: expect.getState().currentTestName ?? 'unnamed' });
}

/** Replays the kept histories. Throws if the current workflow code would act differently in one. */
export async function expectKeptReplays(): Promise<void> {
  const faults = await replayFaults(kept.splice(0));
  expect(Object.fromEntries(faults)).toEqual({});
}

/** Replays histories with the current workflow code; returns what went wrong, by name. */
export async function replayFaults(
  histories: readonly NamedHistory[],
): Promise<ReadonlyMap<string, string>> {
  const faults = new Map<string, string>();
  if (histories.length === 0) return faults;
  const options = { workflowBundle: await sourceBundle() };
  let index = 0;
  try {
    // The worker replays one history at a time, in their order.
    for await (const { error } of Worker.runReplayHistories(options, [...histories])) {
      const replayed = histories[index];
      if (error && replayed)
        faults.set(replayed.name, `${error.message}\n${eventsOf(replayed.history)}`);
      index += 1;
    }
  } finally {
    // A replay worker hooks every promise of this process, and leaves that to the next test files.
    globalHandlers.uninstall();
  }
  return faults;
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
