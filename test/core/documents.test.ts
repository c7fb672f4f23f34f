import { describe, expect, test } from 'vitest';
import { renderForCompaction } from '../../src/core/rules/compaction.js';
import { documentKey, documentText } from '../../src/core/rules/documents.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';
import { runTurn } from '../support/turn.js';
import type { RetrievalEnd } from '../support/world.js';
import { getOutcome } from '../../src/core/state/turn.js';

const retrieve = { timeoutMs: 1_000 };
const document = (text: string): string => documentText(documentKey({ text }), { shown: text });

/** Runs a turn whose retrieval ends in this way. `seen`: roles and texts before each model call. */
async function run(end: RetrievalEnd, rest: Parameters<typeof config>[0] = {}) {
  const script = [callReply(['look']), textReply('42')];
  const seen: (readonly string[])[] = [];
  let retrievals = 0;
  const state = await runTurn(begun(config({ retrieve, ...rest })), {
    retrieve: async () => {
      retrievals += 1;
      return end;
    },
    callModel: async (now, { closing }) => {
      seen.push(now.transcript.messages.map(({ text }) => text));
      return {
        type: 'replied',
        reply: closing ? textReply('closing') : (script.shift() ?? textReply('?')),
      };
    },
    runCalls: async (_now, calls, finished) => {
      for (const { id } of calls) finished(id, { ok: true, text: 'seen' });
      return null;
    },
  });
  return { state, seen, retrievals };
}

describe('a turn of an agent that retrieves', () => {
  test('retrieves once, before its first model call, which is not a step', async () => {
    const documents = [{ text: document('a'), id: 'one' }, { text: document('b') }];
    const { state, seen, retrievals } = await run({ type: 'retrieved', documents });
    expect(retrievals).toBe(1);
    expect(seen[0]?.slice(1)).toEqual([document('a'), document('b')]);
    expect(getOutcome(state)).toMatchObject({ status: 'completed', steps: 2 });
    expect(state.transcript.messages[1]).toMatchObject({
      role: 'user',
      origin: 'retrieved',
      document: { id: 'one' },
    });
  });

  test('continues if nothing is found', async () => {
    const { state, retrievals } = await run({ type: 'retrieved', documents: [] });
    expect([retrievals, getOutcome(state)?.status]).toEqual([1, 'completed']);
  });

  test('ends if the retrieval fails, with the reason', async () => {
    const { state, seen } = await run({ type: 'failed', message: 'the index is down' });
    expect(seen).toEqual([]);
    expect(getOutcome(state)).toMatchObject({
      status: 'failed',
      reason: 'error',
      error: 'the index is down',
    });
  });

  test('retrieves nothing if the run has no step left', async () => {
    const limits = { run: { steps: 1 } };
    const { state } = await run({ type: 'retrieved', documents: [] }, { limits });
    const over: RunState = { ...state, open: true };
    const limited = reduce(over, {
      type: 'message-received',
      message: { id: 'b', text: 'again', turn: 2 },
    });
    const begunAgain = reduce(reduce(limited, { type: 'turn-recorded', at: 0 }), {
      type: 'turn-begun',
      at: 0,
    });
    expect(nextAction(begunAgain)).toEqual({ type: 'end-at-limit', reason: 'steps' });
  });

  test.each(['cancelTurn', 'wallMs'] as const)('can be interrupted by %s', async (by) => {
    const { state, retrievals } = await run({ type: 'interrupted', by });
    const status = by === 'wallMs' ? 'stopped' : 'cancelled';
    expect(getOutcome(state)).toMatchObject({ status, steps: 0 });
    expect(retrievals).toBe(1);
  });

  test('keeps documents that arrived despite an interruption', async () => {
    const documents = [{ text: document('a') }];
    const { state } = await run({ type: 'retrieved', documents, interrupted: 'cancelTurn' });
    expect(getOutcome(state)?.status).toBe('cancelled');
    expect(state.transcript.messages).toHaveLength(2);
  });
});

test('a summary distinguishes a document from a person', () => {
  const record = renderForCompaction([
    { role: 'user', text: 'why?' },
    { role: 'user', text: document('because') },
  ]);
  expect(record).toMatch(/^user:\n\| why\?\nretrieved document:\n\| Found for this turn/);
});
