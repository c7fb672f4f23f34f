import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createTranscriptCache,
  type PromptKey,
} from '../../src/activities/model/transcript-cache.js';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { chain, FIRST_LINK } from '../../src/core/transcript/transcript.js';

/** An event in a worker's memory between two prompts. */
type Move =
  | {
      readonly type: 'step';
      readonly calls: number;
      readonly isHere: boolean;
      readonly order: number;
    }
  | { readonly type: 'zombie-result' }
  | { readonly type: 'zombie-reply' }
  | { readonly type: 'other-run' }
  | { readonly type: 'retry' }
  | { readonly type: 'reset' };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('step' as const),
      calls: fc.integer({ min: 0, max: 4 }),
      isHere: fc.boolean(),
      order: fc.nat(23),
    }),
  },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom('zombie-result', 'zombie-reply', 'other-run', 'retry', 'reset')
      .map((type): Move => ({ type })),
  },
);

describe('the transcript cache', () => {
  test('serves only the transcript of the workflow, in any order of events', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(move, { maxLength: 40 }),
        fc.constantFrom(1, 2_000, 1_000_000),
        async (moves, maxBytes) => {
          const cache = createTranscriptCache({ maxBytes });
          let serial = 0;
          let truth: PromptMessage[] = [{ role: 'user', text: 'go' }];
          const name = (upTo = truth.length, run = 'r'): PromptKey => ({
            run,
            upTo,
            head: headOf(truth.slice(0, upTo)),
          });
          const ask = async (): Promise<void> => {
            const messages = await cache.prompt(name(), async (from, to) => truth.slice(from, to));
            expect(messages).toEqual(truth);
          };
          await ask();
          for (const each of moves) {
            if (each.type === 'step') {
              const before = name();
              const { reply, results } = stepOf((serial += 1), each.calls);
              // Results finish in any order, on this worker or on another one.
              if (each.isHere) {
                cache.noteReply(before, reply);
                for (const result of rotate(results, each.order)) cache.noteResult('r', result);
              }
              truth = [...truth, reply, ...results];
              await ask();
            } else if (each.type === 'zombie-result') {
              const last = truth.findLast((message) => message.role === 'tool');
              const callId = last?.role === 'tool' ? last.callId : 'call_0';
              cache.noteResult('r', { role: 'tool', text: `stale ${(serial += 1)}`, callId });
              cache.noteResult('r', {
                role: 'tool',
                text: 'stale',
                callId: `call_${serial + 1}_0`,
              });
            } else if (each.type === 'zombie-reply') {
              cache.noteReply(name(), { role: 'assistant', text: `stale ${(serial += 1)}` });
            } else if (each.type === 'other-run') {
              await cache
                .prompt(name(1, `other ${serial}`), async () => truth.slice(0, 1))
                .catch(() => undefined);
            } else if (each.type === 'reset') {
              truth = truth.slice(0, 1);
              await ask();
            } else {
              await ask();
            }
          }
          await ask();
        },
      ),
      { numRuns: 500 },
    );
  });

  test('refuses a transcript without the digest of the prompt', async () => {
    const cache = createTranscriptCache({ maxBytes: 1_000 });
    const other: PromptMessage[] = [{ role: 'user', text: 'something else' }];
    await expect(cache.prompt({ run: 'r', upTo: 1, head: 'x' }, async () => other)).rejects.toThrow(
      'digest',
    );
  });

  test('evicts the least recently used runs when it is full, with their unplaced results', async () => {
    const cache = createTranscriptCache({ maxBytes: 200_000 });
    const user: PromptMessage = { role: 'user', text: 'u'.repeat(20_000) };
    const head = headOf([user]);
    let asked = 0;
    const prompt = async (run: string): Promise<void> => {
      await cache.prompt({ run, upTo: 1, head }, async () => {
        asked += 1;
        return [user];
      });
    };
    const runs = Array.from({ length: 30 }, (_, n) => `run ${n}`);
    for (const run of runs) {
      await prompt(run);
      cache.noteResult(run, { role: 'tool', text: 'r'.repeat(5_000), callId: 'call_1_1_0' });
    }
    expect(asked).toBe(30);
    for (const run of runs.slice(0, 15)) await prompt(run);
    expect(asked).toBe(45);
    await prompt('run 14');
    expect(asked).toBe(45);
  });

  test('does not fetch messages that this worker has made', async () => {
    const cache = createTranscriptCache({ maxBytes: 100_000 });
    const user: PromptMessage = { role: 'user', text: 'go' };
    const start = { run: 'r', upTo: 1, head: headOf([user]) };
    await cache.prompt(start, async () => [user]);
    const { reply, results } = stepOf(1, 2);
    cache.noteReply(start, reply);
    for (const result of results.toReversed()) cache.noteResult('r', result);
    const truth = [user, reply, ...results];
    const messages = await cache.prompt({ ...start, upTo: truth.length, head: headOf(truth) }, () =>
      Promise.reject(new Error('asked')),
    );
    expect(messages).toEqual(truth);
  });
});

function headOf(messages: readonly PromptMessage[]): string {
  return messages.reduce((head, message) => chain(head, message), FIRST_LINK);
}

function stepOf(serial: number, count: number) {
  const ids = Array.from({ length: count }, (_, index) => `call_${serial}_${index}`);
  const calls = ids.map((id) => ({ id, name: 't', arguments: '{}', digest: 'x' }));
  const reply: PromptMessage =
    count === 0
      ? { role: 'assistant', text: `step ${serial}` }
      : { role: 'assistant', text: '', calls };
  const results = ids.map((callId) => ({
    role: 'tool' as const,
    text: `result of ${callId} ${'x'.repeat(serial % 7)}`,
    callId,
  }));
  return { reply, results };
}

function rotate<T>(items: readonly T[], by: number): readonly T[] {
  const at = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(at), ...items.slice(0, at)].toReversed();
}
