import type { Client } from '@temporalio/client';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { History } from '../../src/history/history-event.js';
import { project, type Projection } from '../../src/history/projection.js';
import type { Message } from '../../src/core/transcript/messages.js';
import { historyBytes } from './history-text.js';
import { keepHistory } from './rig.js';
import { replayLater } from './replays.js';

export interface Segment {
  readonly runId: string;
  readonly history: History;
  readonly view: Projection;
  /** The size of the history as the server counts it: the bytes of its events as JSON. */
  readonly bytes: number;
}

/** Returns all segments of a run, oldest first; each is checked to replay. */
export async function segmentsOf(client: Client, id: string): Promise<readonly Segment[]> {
  const segments: Segment[] = [];
  let runId: string | undefined = (await client.workflow.getHandle(id).describe()).runId;
  while (runId !== undefined && runId !== '') {
    const history: History = await client.workflow.getHandle(id, runId).fetchHistory();
    replayLater(history, id);
    const events = (history.events ?? []).map(decodeEvent);
    const bytes = historyBytes(history);
    segments.unshift({ runId, history, view: project(events), bytes });
    await keepHistory(history, ` back ${segments.length}`);
    const [started] = events;
    runId = started?.type === 'started' ? started.previousRunId : undefined;
  }
  return segments;
}

/** Returns all messages in order of their numbers. Throws if two segments disagree about one. */
export function messagesIn(segments: readonly Segment[]): readonly Message[] {
  const all = new Map<number, Message>();
  for (const { view } of segments) {
    for (const message of view.messages) {
      const before = all.get(message.n);
      if (before !== undefined && before.text !== message.text) {
        throw new Error(`message ${message.n} differs between segments`);
      }
      all.set(message.n, message);
    }
  }
  return [...all.values()].toSorted((one, other) => one.n - other.n);
}

/** Returns the outcomes of all turns, in order. */
export function turnsIn(segments: readonly Segment[]): Projection['turns'] {
  return segments.flatMap(({ view }) => view.turns);
}
