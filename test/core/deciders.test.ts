import { describe, expect, test } from 'vitest';
import {
  deciderProblem,
  decidersText,
  peopleOf,
  type Deciders,
} from '../../src/core/requests/deciders.js';
import { reduce } from '../../src/core/reduce.js';
import { firstState } from '../../src/core/segments/begin.js';
import { readStart } from '../../src/core/segments/start.js';

const asked = ['request'];

/** What another version, or another program, may have recorded. */
const unknown = (deciders: unknown): readonly Deciders[] => [deciders as Deciders];

describe('deciders that this version does not know', () => {
  test.each(['not requester', 'requesters', { names: ['request'] }, null, 7])(
    'such as %j let no one decide',
    (deciders) => {
      const problem = deciderProblem(unknown(deciders), { by: 'request', requesters: asked });
      const text = `no one, since the deciders ${JSON.stringify(deciders)} are unknown`;
      expect(problem).toBe(`by: expected ${text}, got "request"`);
      expect(decidersText(unknown(deciders))).toBe(text);
    },
  );
});

test.each<[Deciders, string, boolean]>([
  ['requester', 'request', true],
  ['requester', 'ada', false],
  ['not_requester', 'request', false],
  ['not_requester', 'ada', true],
  [['ada'], 'ada', true],
  [['adam', 'bo'], 'ada', false],
])('%j and %s: %s', (deciders, by, may) => {
  expect(deciderProblem([deciders], { by, requesters: asked }) === null).toBe(may);
});

test('a message that waits to join the turn excludes its sender, and makes nobody a requester', () => {
  const people = { requesters: ['ann'], joining: ['bob'] };
  const may = (deciders: Deciders, by: string): boolean =>
    deciderProblem([deciders], { by, ...people }) === null;
  expect([may('not_requester', 'bob'), may('requester', 'bob')]).toEqual([false, false]);
  expect([may('not_requester', 'cid'), may('requester', 'ann')]).toEqual([true, true]);
});

test('everyone for whom an agent was called is a requester of its turn', () => {
  const input = { agent: 'a', message: 'go', by: 'ann', requesters: ['ann', 'bob'] };
  const first = firstState({ input, at: 0, root: 'r', firstRunId: 'f' });
  const state = reduce(first, { type: 'turn-begun', at: 0 });
  expect(peopleOf(state)).toEqual({ requesters: ['ann', 'bob'], joining: [] });
});

test('only a calling agent names the people behind a run', () => {
  const start = { cronSchedule: '', hasRetryPolicy: false, hasParent: false, isContinued: false };
  const input = { agent: 'a', message: 'go', requesters: ['ann'] };
  expect(readStart(start, { input, carried: null })).toMatchObject({
    problem: expect.stringContaining('requesters: expected a calling workflow'),
  });
  expect(readStart({ ...start, hasParent: true }, { input, carried: null })).not.toHaveProperty(
    'problem',
  );
});
