import { randomUUID } from 'node:crypto';
import type { ArchivedHistory, ArchivedRun } from '../../src/storage/archive.js';

export const archivedRun: ArchivedRun = { namespace: 'default', id: 'order-17' };

/** Names an archived history with so many events, of a segment of its own unless one is given. */
export function archivedHistory(events: number, runId = randomUUID()): ArchivedHistory {
  return { firstRunId: randomUUID(), runId, events, at: 1_800_000_000_000 + events };
}
