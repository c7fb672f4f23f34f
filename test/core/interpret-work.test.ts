import { describe, expect, test } from 'vitest';
import { unloadedConfig } from '../../src/core/rules/limits.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import {
  after,
  blocked,
  CANCEL,
  canceled,
  completed,
  failed,
  scheduled,
  update,
  workOf,
  model,
  toolTask,
  replied,
} from '../support/facts.js';
import { callReply, begun, config } from '../support/scripts.js';
import { getOpenBatch, getOutcome } from '../../src/core/state/turn.js';

const start = begun(config());
const BLOB = { sha256: 'a'.repeat(64), bytes: 1 };

describe('a retrieval', () => {
  const state = begun(config({ retrieve: { timeoutMs: 1 } }));
  const task = { activity: 'retrieveDocuments', input: {} };
  const begin = after(state, scheduled(task));

  test('adds its documents, even despite an interruption', () => {
    const documents = [{ text: 'found', id: 'd' }];
    for (const facts of [[], [update('cancelTurn')]]) {
      const done = after(begin, ...facts, completed(task, { documents }, 5));
      expect(done.transcript.messages.at(-1)).toMatchObject({
        origin: 'retrieved',
        text: 'found',
        at: 5,
      });
      expect([done.work, done.turn.retrieved]).toEqual([[], true]);
    }
  });

  test('that fails ends the turn with the reason', () => {
    const error = (fact: Parameters<typeof after>[1]) => getOutcome(after(begin, fact))?.error;
    expect(error(failed(task, 'down'))).toBe('retrieve: down');
    expect(error(failed(task, 'x', { type: 'failed', reason: 'error', message: 'no index' }))).toBe(
      'no index',
    );
    expect(error(completed(task, { documents: 7 }))).toContain('it was completed by hand');
    expect(after(begin, failed(task, 'down')).work).toEqual([]);
  });

  test('is blocked for the same reasons as a tool, and interrupted like one', () => {
    expect(workOf(after(begin, blocked(task, 'tool_missing')), 'retrieve')).toHaveProperty('block');
    expect(getOutcome(after(begin, blocked(task, 'quota')))?.status).toBe('failed');
    expect(nextAction(after(begin, blocked(task, 'storage'))).type).toBe('retrieve');
    const ended = after(begin, update('cancelTurn'));
    for (const fact of [canceled(task), failed(task, 'x'), blocked(task, 'storage')]) {
      expect([after(ended, fact).work, getOutcome(after(ended, fact))]).toEqual([[], null]);
    }
    expect(workOf(after(begin, canceled(task)), 'retrieve')).toEqual({ phase: 'waiting' });
  });
});

describe('archiving', () => {
  const archives: RunState = { ...start, archives: true };
  const input = { archive: { from: 0, to: 1 }, chunk: null };
  const task = { activity: 'archiveMessages', input };
  const cut = { activity: 'archiveMessages', input: { ...input, cut: 1, must: true } };

  test('remembers which messages are in the archive and in a chunk', () => {
    const done = after(archives, scheduled(task), completed(task, {}));
    expect([done.archived, done.work, done.transcript.chunks]).toEqual([1, [], []]);
    const chunked = {
      activity: 'archiveMessages',
      input: { archive: null, chunk: { from: 2, to: 3 } },
    };
    const offloaded = after(archives, scheduled(chunked), completed(chunked, { blob: BLOB }));
    expect(offloaded.transcript.chunks).toEqual([{ blob: BLOB, count: 1 }]);
    expect([offloaded.archived, offloaded.transcript.messages]).toEqual([0, []]);
    // An operator who completes it by hand has stored no chunk.
    const byHand = after(archives, scheduled(chunked), completed(chunked, {}));
    expect(byHand.transcript).toEqual(archives.transcript);
  });

  test('that fails keeps the run in its segment for ten steps or ten minutes', () => {
    const stays = { step: 10, at: 600_005 };
    for (const fact of [
      failed(task, 'down', null, 5),
      blocked(task, 'storage', {}, 5),
      completed(task, 7, 5),
    ]) {
      const kept = after(archives, scheduled(task), fact);
      expect([kept.stayUntil, kept.work]).toEqual([stays, []]);
    }
  });

  test('is blocked only if the run cannot continue without it', () => {
    const begin = after(archives, scheduled(cut));
    expect(workOf(after(begin, blocked(cut, 'storage')), 'archive')).toHaveProperty('block');
    const gaveUp = after(begin, failed(cut, 'down'));
    expect([gaveUp.work, gaveUp.compaction.notBelow > 0]).toEqual([[], true]);
    expect(after(begin, blocked(cut, 'quota')).work).toEqual([]);
    expect(gaveUp).not.toHaveProperty('stayUntil');
  });

  test('that is interrupted compacts nothing', () => {
    const ended = after(archives, scheduled(cut), update('cancelTurn'));
    for (const fact of [canceled(cut), blocked(cut, 'storage'), failed(cut, 'x')]) {
      expect([after(ended, fact).work, after(ended, fact).compaction]).toEqual([
        [],
        archives.compaction,
      ]);
    }
    expect(workOf(after(archives, scheduled(cut), canceled(cut)), 'archive')).toEqual({
      phase: 'waiting',
    });
  });

  test('at the end of a segment does not end the segment if it is interrupted', () => {
    const ended = after(archives, scheduled(task), update('cancelTurn'), canceled(task, 5));
    expect(ended.stayUntil).toEqual({ step: 10, at: 600_005 });
  });
});

describe('a fork', () => {
  const forks: RunState = { ...initialState(config()), forks: true };
  const task = { activity: 'forkMessages', input: { run: 'other' } };
  const result = {
    chunk: { blob: BLOB, count: 2 },
    head: 'b'.repeat(32),
    tokens: 9,
    next: 2,
    from: { runId: 'r' },
  };

  test('begins the run with the messages of another', () => {
    const done = after(forks, scheduled(task), completed(task, result));
    expect(done.forkedFrom).toEqual({ run: 'other', runId: 'r', at: 2 });
    expect(done.transcript).toMatchObject({
      next: 2,
      chunks: [result.chunk],
      head: result.head,
      keptAside: [],
    });
    expect([done.work, done.forks]).toEqual([[], undefined]);
    expect(nextAction(forks).type).toBe('load');
  });

  test('of a graph begins at a node, and remembers before which of its visits', () => {
    const place = { begins: 'ask', visit: 3 };
    const graph = { ...place, values: { n: 1 } };
    const done = after(forks, scheduled(task), completed(task, { ...result, graph }));
    const from = { run: 'other', runId: 'r', at: 2, node: 'ask', visit: 3 };
    expect(done.forkedFrom).toEqual(from);
    expect(done.graph?.values).toEqual({ n: 1 });
  });

  test('is blocked by the store, fails otherwise, and ends with the run', () => {
    const begin = after(forks, scheduled(task));
    expect(workOf(after(begin, blocked(task, 'storage')), 'fork')).toHaveProperty('block');
    for (const fact of [failed(task, 'x'), blocked(task, 'quota'), completed(task, 7)]) {
      expect([after(begin, fact).work, after(begin, fact).forks]).toEqual([[], true]);
    }
    const ended = after(begin, CANCEL);
    for (const fact of [blocked(task, 'storage'), canceled(task)])
      expect(after(ended, fact).work).toEqual([]);
    expect(workOf(after(begin, canceled(task)), 'fork')).toEqual({ phase: 'waiting' });
  });
});

describe('the check of a blob', () => {
  const check = { activity: 'checkBlob', input: { work: 'model' } };
  const waits = after(
    start,
    scheduled(model()),
    blocked(model(), 'storage', { blob: 'b' }),
    scheduled(check),
  );

  test('lets the work be tried, however the check ends', () => {
    expect(workOf(after(waits, scheduled(check)), 'model')).toMatchObject({
      as: 'check',
      block: { blob: 'b' },
    });
    for (const fact of [completed(check, null), failed(check, 'x')]) {
      expect(workOf(after(waits, fact), 'model')).toEqual({
        probeMs: 30_000,
        checked: ['b'],
        phase: 'waiting',
      });
    }
  });

  test('that is canceled ends the work after an interruption, and a call has a result', () => {
    expect(workOf(after(waits, canceled(check, 4)), 'model')).toMatchObject({
      block: { until: 4 },
    });
    expect(after(waits, CANCEL, canceled(check)).work).toEqual([]);
    const state = replied(start, callReply(['look']));
    const ofCall = { activity: 'checkBlob', input: { work: 'call_1_1_0' } };
    const checking = after(
      state,
      scheduled(toolTask(state, 0)),
      blocked(toolTask(state, 0), 'storage', { blob: 'b' }),
      scheduled(ofCall),
    );
    const ended = after(checking, update('cancelTurn'), canceled(ofCall));
    expect(ended.work).toEqual([]);
    expect(getOpenBatch(ended)?.results[0]?.text).toContain('interrupted during execution');
  });
});

test('a segment that could not end is retried later, once the agent is loaded', () => {
  expect(after(start, { type: 'segment-kept', at: 5 }).stayUntil).toEqual({
    step: 10,
    at: 600_005,
  });
  const empty = initialState(unloadedConfig('test'));
  expect(after(empty, { type: 'segment-kept', at: 5 })).toEqual(empty);
});
