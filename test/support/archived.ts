import { randomUUID } from 'node:crypto';
import type { ArchivedHistory, ArchivedRun } from '../../src/storage/blob-store.js';

export const archivedRun: ArchivedRun = { namespace: 'default', id: 'order-17' };

/**
 * Returns the name of an archived history with this many events, of a unique segment by default.
 */
export function archivedHistory(events: number, runId = randomUUID()): ArchivedHistory {
  return { firstRunId: randomUUID(), runId, events, at: 1_800_000_000_000 + events };
}
