import { describe, expect, test } from 'vitest';
import { askRefusal } from '../../src/core/run/ask.js';
import type { Fact } from '../../src/core/run/events.js';
import type { Ask } from '../../src/core/input/inbox.js';
import { needsConsent } from '../../src/core/state/consent.js';
import { toolCall } from '../support/activity.js';
import { mayAnswer } from '../../src/core/requests/answer-by-message.js';
import { decisionProblem } from '../../src/core/requests/refusal.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import type { RunState } from '../../src/core/state/state.js';
import { getOutcome } from '../../src/core/state/turn.js';
import { afterNextAction, decision, requestOf, runWithCall } from '../support/pending-call.js';
import { actions, action, CALL, waiting } from '../support/asking-graph.js';
import { after, update } from '../support/facts.js';
import { begun, config, toolDefinition } from '../support/scripts.js';

const NOW = { id: 'new', now: 9 };

const begunRun = (): RunState => ({ ...begun(config()), open: true });

const messageFact = (message: string, rest: object = {}) =>
  update('ask', { message, ...rest }, `ask ${message}`, 9);
describe('a question of a graph', () => {
  const state = waiting({});

  test('is shown with its choices', () => {
    expect(requestOf(state, CALL)).toMatchObject({
      id: 'r1',
      kind: 'question',
      question: 'Send it?',
      options: ['yes', 'no'],
      raisedAt: 5,
    });
  });

  test.each(['yes', 'no'])('is answered by a message with a clear word: %s', (word) => {
    const answered = after(state, messageFact(word, { by: 'ann' }));
    expect(openRequests(answered, 'run')).toEqual([]);
    expect(answered.graph?.at).toBeNull();
    expect(answered.inbox.count).toBe((state.inbox.count ?? 0) + 1);
    expect(answered.decisions).toEqual([
      {
        what: 'resolve',
        id: `ask ${word}`,
        at: 9,
        by: 'ann',
        request: 'r1',
        call: CALL,
        as: 'answer',
      },
    ]);
  });

  test('is answered by an anonymous message, too, and by one that arrives as a signal', () => {
    expect(after(state, messageFact('yes')).decisions?.[0]).not.toHaveProperty('by');
    const input = { message: 'Yes.', id: 's1' };
    const signaled = after(state, { type: 'signal', name: 'message', input, at: 9 });
    expect(openRequests(signaled, 'run')).toEqual([]);
    expect(signaled.decisions).toMatchObject([{ id: 's1', as: 'answer' }]);
  });

  test('stays open if a message says something else, or is refused', () => {
    for (const fact of [
      messageFact('what?'),
      { type: 'signal', name: 'message', input: { message: 'yes' }, at: 9 } as const,
    ]) {
      const next = after(state, fact);
      expect(requestOf(next, CALL).id).toBe('r1');
      expect(next.decisions).toBeUndefined();
    }
  });

  test('is not answered by a message if only certain people may decide', () => {
    const strict = after(waiting({}, { decisions: { mayDecide: true } }), messageFact('yes'));
    expect(requestOf(strict, CALL).id).toBe('r1');
  });

  test('is answered only once by the same message', () => {
    const answered = after(state, messageFact('yes'));
    expect(after(answered, messageFact('yes')).decisions).toHaveLength(1);
  });
});

describe('a plan of the graph', () => {
  const state = waiting({ plan: 'plan' });

  test('is executed unchanged after an approval', () => {
    const yes = after(state, decision(state, 'approve', {}, { name: CALL }));
    expect(actions(yes)).toEqual(['a1', 'a2']);
    expect(yes.graph?.confirmed).toBeDefined();
    expect(yes.decisions).toMatchObject([{ as: 'approve', call: CALL }]);
  });

  const asks = { then: 'ask', why: 'a rule' } as const;
  const dependent = { ...action('a3'), after: ['a2'] };
  const mixed = waiting(
    { plan: 'plan' },
    { actions: [action('a1'), { ...action('a2'), asks }, dependent] },
  );
  const decide = (as: string, rest: object = {}): RunState =>
    after(mixed, decision(mixed, as, rest, { name: CALL }));

  test('loses all its actions with a denial, also those that need no approval', () => {
    expect(actions(decide('deny'))).toEqual([]);
    expect(actions(after(mixed, messageFact('no')))).toEqual([]);
  });

  test('keeps with "some" what needs no approval, or the named actions', () => {
    expect(actions(decide('some'))).toEqual(['a1']);
    expect(actions(decide('some', { actions: ['a2'] }))).toEqual(['a2']);
    expect(actions(after(mixed, messageFact('some')))).toEqual(['a1']);
  });

  test.each([
    ['some', { actions: ['a9'] }, 'actions: expected ids of r1'],
    ['some', { actions: [] }, 'got none, so nothing would be executed; give ids, or "deny"'],
    ['some', { actions: [''] }, 'actions: expected ids of r1'],
    ['some', { actions: ['a1', 'and', 'a2'] }, 'actions: expected ids of r1'],
    ['some', { actions: ['a1 a2'] }, 'actions: expected ids of r1'],
    ['some', { actions: ['a3'] }, 'got "a3": a3 needs a2: name both, or neither'],
    ['some', { actions: ['a1', 'a9'] }, 'got "a1 a9": the plan has no action "a9"'],
    ['approve', { actions: ['a1'] }, 'actions: expected only with "some"'],
  ])('refuses "%s" with %j', (as, rest, problem) => {
    const { id: request, digest } = requestOf(mixed, CALL);
    const given = { request, digest, as, ...rest };
    expect(decisionProblem(mixed, given, { update: 'u', now: 0 })).toMatchObject({
      reason: 'malformed',
      message: expect.stringContaining(problem),
    });
  });

  test.each(['deny', 'some', 'approve'])('passes the note of "%s" to the model', (as) => {
    const { messages } = decide(as, { note: 'never on a Sunday' }).transcript;
    expect(messages.at(-1)).toMatchObject({
      role: 'user',
      origin: 'perdure',
      text: expect.stringContaining('noted: never on a Sunday'),
    });
  });

  test('keeps the actions that a message names', () => {
    const some = after(state, messageFact('only a2'));
    expect(actions(some)).toEqual(['a2']);
    expect(some.inbox.count).toBe((state.inbox.count ?? 0) + 1);
    expect(openRequests(some, 'run')).toEqual([]);
  });
});

describe('a message that may not decide', () => {
  const forms = [waiting({}), waiting({ plan: 'plan' })];

  test('is refused with its reason, and decides nothing, as an update and as a signal', () => {
    for (const state of forms) {
      for (const mode of ['queue', 'steer'] as const) {
        const ask = { message: 'yes', answers: false, id: 'n', mode };
        expect(askRefusal(state, ask, NOW)).toMatchObject({ reason: 'not_a_decider' });
        const next = after(state, { type: 'signal', name: 'message', input: ask, at: 9 });
        expect(requestOf(next, CALL).id).toBe('r1');
        expect(next.decisions).toBeUndefined();
        expect(next.inbox.refused).toHaveLength(1);
        expect(after(state, update('ask', ask, 'n', 9)).decisions).toBeUndefined();
      }
    }
  });

  test('is an ordinary message if it is no answer', () => {
    const ask = { message: 'what is on tomorrow?', answers: false };
    expect(askRefusal(waiting({}), ask, NOW)).toBeNull();
  });
});

describe('a message that names what it answers', () => {
  const state = waiting({ plan: 'plan' });
  const { digest } = requestOf(state, CALL);
  const said = (answers: object, message = 'yes') => ({ message, answers }) as Ask;

  test('decides about exactly that', () => {
    const ask = said({ request: 'r1', digest });
    expect(askRefusal(state, ask, NOW)).toBeNull();
    const next = after(state, update('ask', ask, 'n', 9));
    expect(next.decisions).toMatchObject([{ request: 'r1', as: 'approve', id: 'n' }]);
    expect(askRefusal(next, ask, { id: 'other', now: 9 })).toMatchObject({ reason: 'decided' });
    expect(after(next, update('ask', ask, 'n', 9)).decisions).toHaveLength(1);
  });

  test.each([
    ['another form', { request: 'r1', digest: 'f'.repeat(64) }, 'wrong_digest'],
    ['no request', { request: 'r7', digest }, 'unknown_request'],
  ])(
    'is refused with its reason for %s, also by signal, and never decides',
    (_, answers, reason) => {
      const ask = { ...said(answers), id: 'n' };
      expect(askRefusal(state, ask, NOW)).toMatchObject({ reason });
      const next = after(state, { type: 'signal', name: 'message', input: ask, at: 9 });
      expect(next.decisions).toBeUndefined();
      expect(next.inbox.refused).toHaveLength(1);
      expect(after(state, update('ask', ask, 'n', 9)).decisions).toBeUndefined();
    },
  );

  test('is refused with help if it is no answer, and if only certain people may decide', () => {
    const unclear = said({ request: 'r1', digest }, 'what is a1?');
    expect(askRefusal(state, unclear, NOW)).toMatchObject({ reason: 'unclear' });
    const strict = waiting({}, { decisions: { mayDecide: true } });
    const bound = said({ request: 'r1', digest: requestOf(strict, CALL).digest });
    expect(askRefusal(strict, bound, NOW)).toMatchObject({ reason: 'not_a_decider' });
  });

  test.each([
    ['yes', 'approve'],
    ['no', 'deny'],
  ])('answers an approval, too: %s', (word, as) => {
    const asks = { then: 'ask', why: 'a rule' } as const;
    const tools = [toolDefinition('put', 'keyed')];
    const start = { ...begun(config({ tools })), open: true };
    const asked = afterNextAction(runWithCall('put', { verdict: asks }, start));
    const { id, digest: shown } = requestOf(asked);
    const ask = said({ request: id, digest: shown }, word);
    expect(askRefusal(asked, { message: word }, NOW)).toMatchObject({ reason: 'unclear' });
    expect(askRefusal(asked, ask, NOW)).toBeNull();
    expect(after(asked, update('ask', ask, 'n', 9)).decisions).toMatchObject([{ request: id, as }]);
  });
});

describe('a message that does not name what it answers', () => {
  const state = waiting({ plan: 'plan' });

  test('still decides after a worker rejected the decision of another person', () => {
    const rejected = {
      what: 'resolve',
      id: 'u',
      at: 6,
      by: 'ann',
      request: 'r1',
      call: CALL,
      as: 'answer',
      refused: 'expected "yes"',
    } as const;
    const tried = { ...state, decisions: [rejected] };
    expect(askRefusal(tried, { message: 'yes', by: 'bob', sentAt: 8 }, NOW)).toBeNull();
  });

  test('decides nothing if it was sent before the request was raised', () => {
    const early = { message: 'yes', sentAt: 4 };
    expect(askRefusal(state, early, NOW)).toMatchObject({ reason: 'unbound' });
    expect(after(state, update('ask', early, 'n', 9)).decisions).toBeUndefined();
    expect(askRefusal(state, { message: 'yes', sentAt: 5 }, NOW)).toBeNull();
  });

  test('decides nothing if it was sent by a clock that is ahead', () => {
    const early = { message: 'yes', sentAt: NOW.now + 86_400_000 };
    expect(askRefusal(state, early, NOW)).toMatchObject({
      reason: 'unbound',
      message: expect.stringContaining("its sender's clock is ahead"),
    });
    // A little ahead, at a real time of day: it decides when it is accepted, too.
    const now = 1_800_000_000_000;
    const soon = { message: 'yes', sentAt: now + 1_000 };
    expect(askRefusal(state, soon, { ...NOW, now })).toBeNull();
    expect(after(state, update('ask', soon, 'n', now)).decisions).toHaveLength(1);
  });

  test('decides nothing about a request that replaced one that another person answered', () => {
    const edited = { message: 'edit: only a2', by: 'ann' };
    let replaced = after(state, update('ask', edited, 'e', 6));
    while (openRequests(replaced, 'run').length === 0) replaced = afterNextAction(replaced, 7);
    const request = requestOf(replaced, 'node_ask_2_0');
    expect(request.id).toBe('r2');
    const bob = { message: 'yes', by: 'bob', sentAt: 8 };
    expect(askRefusal(replaced, bob, NOW)).toMatchObject({ reason: 'unbound' });
    expect(after(replaced, update('ask', bob, 'n', 9)).decisions).toHaveLength(1);
    expect(askRefusal(replaced, { ...bob, by: 'ann' }, NOW)).toBeNull();
    const answers = { request: 'r2', digest: request.digest };
    expect(askRefusal(replaced, { ...bob, answers }, NOW)).toBeNull();
    const stale = { request: 'r1', digest: requestOf(state, CALL).digest };
    expect(askRefusal(replaced, { ...bob, answers: stale }, NOW)).toMatchObject({
      reason: 'decided',
    });
  });
});

describe('while a person is asked', () => {
  test.each([
    'yes please',
    'maybe',
    'ja',
    'Ok, do it!',
    'go ahead',
    'nope',
    '👍',
    'not sure',
    'no way',
  ])('"%s" gets help, and becomes no turn', (message) => {
    for (const state of [waiting({}), waiting({ plan: 'plan' })]) {
      expect(askRefusal(state, { message }, NOW)).toMatchObject({
        reason: 'unclear',
        message: expect.stringContaining('request r1: expected "yes"'),
      });
    }
    expect(askRefusal(begunRun(), { message }, NOW)).toBeNull();
  });

  test.each([
    'what is on tomorrow?',
    'ok, and what about Tuesday?',
    'do you have time',
    'Yesterday',
  ])('"%s" is a message like any other', (message) =>
    expect(askRefusal(waiting({}), { message }, NOW)).toBeNull(),
  );

  test('every answer to a plan is recognized as one before it is sent', () => {
    for (const text of [
      'yes',
      'some',
      'only a1',
      'all but a2',
      'a1 a2',
      'edit: x',
      'nothing',
      'OK.',
    ])
      expect(mayAnswer(text)).toBe(true);
    expect(mayAnswer('Book a room')).toBe(false);
  });
});

test('a confirmed call whose rules were applied late asks for deciders and hidden arguments alone', () => {
  const verdict = { then: 'ask', why: 'a rule' } as const;
  const call = { ...toolCall('put', { euros: 5 }), confirmed: true, asks: true, verdict } as const;
  const state = begunRun();
  const parsed = { arguments: '{"euros":5,"tip":1}', digest: 'd' };
  expect(needsConsent(state, call)).toBe(false);
  expect(needsConsent(state, { ...call, verdict: { ...verdict, deciders: [['boss']] } })).toBe(
    true,
  );
  expect(needsConsent(state, { ...call, parsed })).toBe(true);
  const { confirmed: _, ...unconfirmed } = call;
  expect(needsConsent(state, unconfirmed)).toBe(true);
});

test('a question that is not answered in time is denied', () => {
  const state = waiting({ expiresMs: 60_000 }, { open: false });
  expect(requestOf(state, CALL)).toMatchObject({ expiresAt: 60_005, onExpiry: 'deny' });
  expect(after(state, { type: 'clock', at: 60_004 })).toEqual(state);
  const late = after(state, { type: 'clock', at: 60_005 });
  expect(getOutcome(late)).toMatchObject({ status: 'completed' });
  expect(late.decisions).toEqual([
    { what: 'resolve', id: '', at: 60_005, request: 'r1', call: CALL, as: 'expired' },
  ]);
});

describe('in a run that an earlier version began', () => {
  const earlier = (state: RunState): RunState => {
    const { semantics: _, ...older } = state.config;
    return { ...state, config: older };
  };
  const asks = { then: 'ask', why: 'a rule' } as const;
  const ACTIONS = [action('a1'), { ...action('a2'), asks }];
  const asked = earlier(waiting({ plan: 'plan' }, { actions: ACTIONS }));
  const deny = (rest: object = {}): Fact =>
    decision(asked, 'deny', { note: 'not now', ...rest }, { name: CALL, at: 9 });
  const received = (fact: Fact): Fact =>
    fact.type === 'update' || fact.type === 'signal' ? { ...fact, patched: true } : fact;

  test('a no keeps what it meant when it was recorded', () => {
    const denied = after(asked, deny());
    expect(actions(denied)).toEqual(['a1']);
    expect(denied.transcript.head).toBe(asked.transcript.head);
    expect(actions(after(asked, messageFact('no')))).toEqual(['a1']);
  });

  test.each([deny(), messageFact('no')])(
    'a no executes nothing if a later version receives it',
    (no) => {
      const denied = after(asked, received(no));
      expect(openRequests(denied, 'run')).toEqual([]);
      expect(actions(denied)).toEqual([]);
    },
  );

  test('the sender of a decision cannot choose its meaning', () => {
    expect(actions(after(asked, deny({ patched: true })))).toEqual(['a1']);
  });

  test('words near an answer were messages, and are refused when a later version receives them', () => {
    const question = earlier(waiting({}));
    const signal = {
      type: 'signal',
      name: 'message',
      input: { message: 'yes please', id: 's' },
      at: 9,
    } as const;
    expect(after(question, signal).inbox.waiting).toMatchObject([{ text: 'yes please', turn: 2 }]);
    const { inbox } = after(question, received(signal));
    expect(inbox).toMatchObject({ waiting: [], refused: [{ id: 's' }] });
  });
});
