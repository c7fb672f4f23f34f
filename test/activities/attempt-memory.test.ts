import { expect, test } from 'vitest';
import { toPaidReply } from '../../src/activities/model/attempt-memory.js';
import { BlobError, type BlobStore } from '../../src/storage/blob-store.js';

const down: BlobStore = {
  put: () => Promise.reject(new BlobError('unwritable', 'the disk is full')),
  get: () => Promise.reject(new BlobError('unreadable', 'the disk is full')),
};
const reply = { text: 'x'.repeat(3_000), calls: [], finish: 'stop' } as const;

test('a store that is down puts a reply into the heartbeat only if it is one of few', async () => {
  expect(await toPaidReply(reply, { checks: 1, blobs: down })).toEqual({ checks: 1, reply });
  const long = { ...reply, text: 'x'.repeat(60_000) };
  expect(await toPaidReply(long, { checks: 1, blobs: down })).toEqual({ checks: 1, reply: long });
  // A decision may ask for 32 replies: together they have to fit a heartbeat.
  expect(await toPaidReply(reply, { checks: 0, blobs: down, inlineBytes: 2_048 })).toBeNull();
});
