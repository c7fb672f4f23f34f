import { describe, expect, test } from 'vitest';
import { deciderProblem, decidersText, type Deciders } from '../../src/core/definition/rules.js';
import { peopleOf } from '../../src/core/state/consent.js';
import { standingOf } from '../../src/core/requests/refusal.js';
import { reduce } from '../../src/core/run/reduce.js';
import { firstState, readStart } from '../../src/core/segments/start.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { afterNextAction, requestOf, runWithCall } from '../support/pending-call.js';
import { config } from '../support/scripts.js';

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

test('a group is those whom a door has verified as its members', () => {
  const may = (by: string, groups?: readonly string[]): boolean =>
    deciderProblem([['ada', 'group:ops']], { by, groups, requesters: asked }) === null;
  expect([may('ada'), may('bo', ['ops']), may('bo', ['dev']), may('bo')]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  // A person whose name looks like a group is not the group.
  expect(may('group:ops')).toBe(false);
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
  expect(peopleOf(state)).toEqual({ requesters: ['ann', 'bob'], joining: [], anonymous: false });
});

test('a message without a name beside named ones lets no one decide as another person', () => {
  const input = { agent: 'a', message: 'go', by: 'ann' };
  const first = firstState({ input, at: 0, root: 'r', firstRunId: 'f' });
  const message = { id: 'm', text: 'for me, too', turn: 1 };
  const waits = reduce(reduce(first, { type: 'turn-begun', at: 0 }), {
    type: 'message-received',
    message,
  });
  for (const state of [waits, reduce(waits, { type: 'messages-joined', at: 1 })]) {
    const may = (deciders: Deciders, by: string): string | null =>
      deciderProblem([deciders], { by, ...peopleOf(state) });
    expect(may('not_requester', 'bob')).toContain('one of its messages has no `by`');
    expect([may('requester', 'ann'), may(['bob'], 'bob')]).toEqual([null, null]);
  }
});

test('a name that joins a turn without one makes its requesters no better known', () => {
  const first = firstState({
    input: { agent: 'a', message: 'go' },
    at: 0,
    root: 'r',
    firstRunId: 'f',
  });
  const begun = reduce(first, { type: 'turn-begun', at: 0 });
  expect(begun.turn).not.toHaveProperty('anonymous');
  const message = { id: 'm', text: 'for me, too', turn: 1, by: 'ann' };
  const waits = reduce(begun, { type: 'message-received', message });
  for (const state of [waits, reduce(waits, { type: 'messages-joined', at: 1 })]) {
    const people = peopleOf(state);
    expect(people.anonymous).toBe(true);
    expect(deciderProblem(['not_requester'], { by: 'bob', ...people })).not.toBeNull();
  }
});

type Sender = { readonly by?: string; readonly door?: string };

test.each<[readonly Sender[], readonly Sender[], string, string | undefined]>([
  [[{ by: 'ann', door: 'http' }], [], 'ann', 'http'],
  [[{ by: 'ann' }], [], 'ann', undefined],
  [[{}, { by: 'bob', door: 'http' }], [], 'bob', 'http'],
  [[{ by: 'ann' }, { by: 'bob', door: 'http' }], [], 'ann', undefined],
  [[{ by: 'ann', door: 'http' }], [{ by: 'bob' }], 'ann', 'http'],
  [[{ by: 'ann' }], [{ by: 'bob', door: 'http' }], 'ann', undefined],
  [[{}], [{ by: 'bob', door: 'http' }], 'bob', 'http'],
])('a turn begun by %j and joined by %j has the requester %s of %s', (first, then, by, door) => {
  const receive = (state: RunState, senders: readonly Sender[]): RunState =>
    senders.reduce((next, sender) => {
      const message = { id: `m${next.inbox.count ?? 0}`, text: 'go', turn: 1, ...sender };
      return reduce(next, { type: 'message-received', message });
    }, state);
  const begun = reduce(receive(initialState(config()), first), { type: 'turn-begun', at: 0 });
  const joined = reduce(receive(begun, then), { type: 'messages-joined', at: 1 });
  const verdict = { then: 'ask', why: 'a rule' } as const;
  const request = requestOf(afterNextAction(runWithCall('put', { verdict }, joined)));
  expect([request.requester, request.requesterDoor]).toEqual([by, door]);
});

test('a called agent may know some of the people behind its turn, and not all', () => {
  const input = { agent: 'a', message: 'go', requesters: ['ann'] };
  const first = firstState({ input, at: 0, root: 'r', firstRunId: 'f' });
  const people = peopleOf(reduce(first, { type: 'turn-begun', at: 0 }));
  expect(people).toEqual({ requesters: ['ann'], joining: [], anonymous: true });
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

describe('the user of a command', () => {
  const begun = (by?: string) => {
    const input = { agent: 'a', message: 'go', ...(by !== undefined && { by }) };
    return reduce(firstState({ input, at: 0, root: 'r', firstRunId: 'f' }), {
      type: 'turn-begun',
      at: 0,
    });
  };

  test.each<[readonly Deciders[], string, string]>([
    [[], 'ann', 'own'],
    [['not_requester'], 'bob', 'own'],
    [['not_requester'], 'ann', 'other'],
    [['requester'], 'bob', 'other'],
    [[['cid', 'group:ops']], 'ann', 'other'],
    [[['cid'], 'not_requester'], 'ann', 'other'],
    // Only a server verifies groups, so a name that a command gives decides nothing.
    [[['group:ops']], 'ann', 'none'],
    [[['ann'], 'not_requester'], 'ann', 'none'],
  ])('decides about a request of ann for %j as %s under this name: %s', (deciders, by, name) => {
    const standing = standingOf(begun('ann'), { id: 'r1', deciders }, by);
    expect(standing.name).toBe(name);
    expect(standing.problem === null).toBe(name === 'own');
  });

  test('decides under no name if the run does not know its requester', () => {
    expect(standingOf(begun(), { id: 'r1', deciders: ['not_requester'] }, 'bob')).toEqual({
      name: 'none',
      problem: expect.stringContaining('it began without `by`'),
    });
  });
});
