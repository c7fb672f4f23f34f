import { describe, expect, test } from 'vitest';
import {
  noteDecideCall,
  paymentOf,
  readMemory,
  toDetails,
  toPaidReply,
  usedBy,
} from '../../src/activities/model/attempt-memory.js';
import { BlobError, type BlobStore } from '../../src/storage/blob-store.js';

const down: BlobStore = {
  put: () => Promise.reject(new BlobError('the disk is full', { kind: 'unwritable' })),
  get: () => Promise.reject(new BlobError('the disk is full', { kind: 'unreadable' })),
};
const reply = { text: 'x'.repeat(3_000), calls: [], finish: 'stop' } as const;

test('a store that is down puts a reply into the heartbeat only if there is room', async () => {
  const inline = { checks: 0, reply };
  expect(await toPaidReply(reply, { checks: 0, blobs: down })).toEqual(inline);
  const long = { ...reply, text: 'x'.repeat(60_000) };
  expect(await toPaidReply(long, { checks: 1, blobs: down })).toEqual({ checks: 1, reply: long });
  // A decision may request 32 replies, which together have to fit into a heartbeat.
  const limits = { checks: 0, blobs: down, inlineBytes: 2_048 };
  expect(await toPaidReply(reply, { ...limits, takenBytes: 180 * 1_024 })).toEqual(inline);
  expect(await toPaidReply(reply, { ...limits, takenBytes: 192 * 1_024 - 3_000 })).toBeNull();
});

describe('the usage of a decision’s calls', () => {
  const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 0 };
  const call = (digest: string) => ({ digest, usage });

  test('is passed to the next attempt, and is reported once', () => {
    const first = readMemory({ heartbeatDetails: undefined });
    noteDecideCall(first, call('a'))({ checks: 0, reply });
    const second = readMemory({ heartbeatDetails: toDetails(first) });
    expect(second.decideReplies).toEqual([{ ...call('a'), checks: 0, reply }]);
    expect(usedBy(second)).toEqual(usage);

    // The end of this call is recorded, so the run counts it.
    const { paid, used } = paymentOf(second);
    expect(used).toEqual(usage);
    const later = readMemory({ heartbeatDetails: undefined }, { paid });
    expect(later.decideReplies).toMatchObject([{ digest: 'a', reply }]);
    noteDecideCall(later, call('b'));
    expect(usedBy(later)).toEqual(usage);
    expect(usedBy(readMemory({ heartbeatDetails: toDetails(later) }, { paid }))).toEqual(usage);
  });

  test('survives although the memory for calls is bounded', () => {
    const memory = readMemory({ heartbeatDetails: undefined });
    for (let number = 1; number <= 200; number += 1) noteDecideCall(memory, call(`${number}`));
    expect(memory.decideReplies).toHaveLength(64);
    expect(memory.decideReplies.at(-1)?.digest).toBe('200');
    expect(usedBy(memory).inputTokens).toBe(2_000);
  });

  test('is empty if the heartbeat details are malformed', () => {
    for (const paid of [
      null,
      7,
      'x',
      [],
      { decideReplies: 'x' },
      { decideReplies: [null, { digest: 1 }] },
    ]) {
      expect(usedBy(readMemory({ heartbeatDetails: { paid } })).inputTokens).toBe(0);
      expect(usedBy(readMemory({ heartbeatDetails: paid }, { paid })).inputTokens).toBe(0);
    }
  });
});
