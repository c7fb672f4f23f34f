import { describe, expect, test } from 'vitest';
import type { Task } from '../../src/core/run/events.js';
import type { RunFunctionResult } from '../../src/core/guards/recorded.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import { undoProblem } from '../../src/core/state/undo-problem.js';
import { undoableCalls } from '../../src/core/state/undo.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import { runWithCall, decision, ID, requestOf } from '../support/pending-call.js';
import {
  after,
  canceled,
  completed,
  failed,
  replied,
  scheduled,
  toolTask,
  update,
} from '../support/facts.js';
import { begun, config, textReply, toolDefinition, TOOLS } from '../support/scripts.js';

const NAME = `undo:${ID}`;
const tools = [toolDefinition('book', 'keyed', { undoMs: 1_000 }), ...TOOLS];
const start = begun(config({ tools }));

/** A run that booked at the time 10. */
function booked(from = start, blob?: object): RunState {
  const state = runWithCall('book', {}, from);
  const task = toolTask(state, 0);
  const result = { ok: true, text: 'booking 7', ...(blob && { blob }) };
  return after(state, scheduled(task, 10), completed(task, result, 10));
}

const TASK: Task = { activity: 'runFunction', input: { function: 'undo', call: { id: ID } } };

/** A run that is undoing its booking. */
const undoing = (state = booked()): RunState =>
  after(state, update('undo', { call: ID, by: 'ann' }, 'u', 20), scheduled(TASK, 20));

const ended = (result: RunFunctionResult, state = undoing()): RunState =>
  after(state, completed(TASK, result, 30));

const ASK = { then: 'ask', why: 'a rule' } as const;
const asking = (rest: object = {}): RunState =>
  ended({ happened: 'undecided', verdict: { ...ASK, ...rest } });

describe('a call that can be undone', () => {
  test('is recorded with everything that its undo needs', () => {
    const blob = { sha256: 'a'.repeat(64), bytes: 9 };
    expect(booked(start, blob).kept).toMatchObject([
      { call: { id: ID }, turn: 1, step: 1, key: 'key 0', text: 'booking 7', blob, until: 1_010 },
    ]);
    expect(booked().kept?.[0]).not.toHaveProperty('blob');
  });

  test('is not recorded if it failed, or if its tool has no undo', () => {
    const state = runWithCall('book', {}, start);
    const task = toolTask(state, 0);
    const bad = after(state, scheduled(task), completed(task, { ok: false, text: 'full' }));
    expect(bad.kept).toBeUndefined();
    const look = runWithCall('look', {}, start);
    const seen = completed(toolTask(look, 0), { ok: true, text: 'seen' });
    expect(after(look, scheduled(toolTask(look, 0)), seen).kept).toBeUndefined();
  });
});

describe('the update `undo`', () => {
  test('begins the undo of the call that it names, under the key of the call', () => {
    const state = after(booked(), update('undo', { call: ID, by: 'ann' }, 'u', 20));
    expect(state.work).toEqual([{ name: NAME, key: 'key 0', by: 'ann', phase: 'waiting' }]);
    expect(undoableCalls(state)).toMatchObject([{ call: ID, state: 'undoing' }]);
    expect(state.decisions).toEqual([{ what: 'undo', id: 'u', at: 20, by: 'ann', call: ID }]);
  });

  test('undoes the last call that can be undone if it names none', () => {
    const state = after(booked(), update('undo', {}, 'u', 20));
    expect(undoableCalls(state)).toMatchObject([{ call: ID, state: 'undoing' }]);
    expect(state.decisions).toMatchObject([{ what: 'undo', call: ID }]);
  });

  test.each([
    ['names another call', { call: 'call_9_9_9' }, 20],
    ['names none after the time for the last one is over', {}, 1_010],
  ])('changes no work if it %s', (_, input, at) => {
    const state = after(booked(), update('undo', input, 'u', at));
    expect(state.work).toEqual([]);
    expect(undoableCalls(state)[0]).not.toHaveProperty('state');
    expect(state.decisions).toMatchObject([{ what: 'undo', call: '' }]);
  });

  test("without a text as the call's id refers to the last call", () => {
    const state = after(booked(), update('undo', { call: 7 }, 'u', 20));
    expect(undoableCalls(state)).toMatchObject([{ call: ID, state: 'undoing' }]);
  });
});

describe('an undo', () => {
  test('is an attempt, which nothing else of the turn waits for', () => {
    expect(undoing().work).toEqual([
      { name: NAME, key: 'key 0', by: 'ann', phase: 'in-flight', as: 'attempt' },
    ]);
    expect(nextAction(undoing()).type).toBe('call-model');
  });

  test('that has happened is over, and the model is informed with the next message', () => {
    const state = ended({ happened: true, result: { ok: true, text: 'gone' } });
    expect(state.work).toEqual([]);
    expect(undoableCalls(state)).toMatchObject([{ state: 'undone' }]);
    expect(undoableCalls(state)[0]).not.toHaveProperty('message');
    expect(state.notes?.[0]).toContain(`a person has undone ${ID}`);
  });

  test('that has happened is told once, before the next message of a person', () => {
    const undone = ended({ happened: true, result: { ok: true, text: 'gone' } });
    const over = reduce(replied({ ...undone, open: true }, textReply('done')), {
      type: 'turn-recorded',
      at: 40,
    });
    expect(over.notes).toHaveLength(1);
    expect(over.transcript.messages.at(-1)).toMatchObject({ text: 'done' });
    const next = reduce(after(over, update('ask', { message: 'and now?' }, 'm', 50)), {
      type: 'turn-begun',
      at: 50,
    });
    expect(next.transcript.messages.slice(-2)).toMatchObject([
      { role: 'user', origin: 'perdure', text: over.notes?.[0], turn: 2, at: 50 },
      { role: 'user', text: 'and now?', turn: 2 },
    ]);
    expect(next).not.toHaveProperty('notes');
  });

  test('passes on what its tool gets, as the worker has found', () => {
    const parsed = { arguments: '{"seat":7}', digest: 'd' };
    const state = ended({ happened: 'undecided', verdict: ASK, parsed });
    expect(state.kept?.[0]?.call.parsed).toEqual(parsed);
  });

  test.each<[string, RunFunctionResult, string]>([
    ['did not happen', { happened: false }, 'it was not undone'],
    ['may have happened', { happened: 'unknown', message: 'no reply' }, 'no reply'],
  ])('that %s has failed, with the reason', (_, result, message) => {
    const state = ended(result);
    expect(state.work).toEqual([]);
    expect(undoableCalls(state)).toMatchObject([{ state: 'failed', message }]);
    expect(state.notes).toBeUndefined();
  });

  test('whose activity fails or is canceled has failed', () => {
    const lost = after(undoing(), failed(TASK, `x${'y'.repeat(600)}`));
    expect(undoableCalls(lost)).toMatchObject([
      { state: 'failed', message: `x${'y'.repeat(499)}` },
    ]);
    const off = after(undoing(), canceled(TASK));
    expect(undoableCalls(off)).toMatchObject([{ state: 'failed', message: 'canceled' }]);
    const odd = after(undoing(), completed(TASK, 7));
    expect(undoableCalls(odd)[0]?.message).toContain('it was completed by hand');
    for (const state of [lost, off, odd]) expect(state.work).toEqual([]);
  });

  test('that was not requested changes nothing', () => {
    const state = booked();
    const done = completed(TASK, { happened: true, result: { ok: true, text: '' } });
    for (const fact of [done, failed(TASK, 'x'), canceled(TASK)]) {
      expect(after(state, fact)).toEqual(state);
    }
  });
});

describe('an undo that needs approval by a rule', () => {
  test('waits for the people that the rule names, as long as it says', () => {
    const state = asking({ deciders: [['ann']], expires: 100 });
    expect(requestOf(state, NAME)).toMatchObject({
      id: 'r1',
      kind: 'approval',
      call: ID,
      why: 'a rule',
      raisedAt: 30,
      expiresAt: 130,
      deciders: [['ann']],
      decisions: ['approve', 'deny'],
    });
    expect(requestOf(asking(), NAME)).toMatchObject({ expiresAt: null, deciders: [] });
    expect(asking().work).toMatchObject([{ phase: 'asking', key: 'key 0' }]);
  });

  test('shows what its tool gets if that is something else than was written', () => {
    const parsed = { arguments: '{"seat":7}', digest: 'p' };
    const state = ended({ happened: 'undecided', verdict: ASK, parsed });
    expect(requestOf(state, NAME)).toMatchObject({ arguments: '{}', parsed: '{"seat":7}' });
    expect(requestOf(asking(), NAME)).not.toHaveProperty('parsed');
  });

  test('is done after an approval', () => {
    const state = asking();
    const yes = after(state, decision(state, 'approve', {}, { name: NAME, at: 40 }));
    expect(yes.work).toEqual([
      { name: NAME, key: 'key 0', by: 'ann', approved: true, phase: 'waiting' },
    ]);
    expect(undoableCalls(yes)).toMatchObject([{ state: 'undoing' }]);
    expect(yes.decisions?.at(-1)).toMatchObject({ as: 'approve', request: 'r1', call: NAME });
  });

  test('is given up after a denial, with the reason', () => {
    const state = asking();
    const no = after(state, decision(state, 'deny', { note: 'keep it' }, { name: NAME }));
    expect(no.work).toEqual([]);
    expect(undoableCalls(no)).toMatchObject([
      { state: 'denied', message: 'a person denied it: keep it' },
    ]);
  });

  test('is denied if it is not decided in time', () => {
    const state = after(asking({ expires: 100_000 }), { type: 'clock', at: 100_030 });
    expect(state.work).toEqual([]);
    expect(undoableCalls(state)).toMatchObject([
      { state: 'denied', message: 'no decision within 100 s' },
    ]);
    expect(state.decisions?.at(-1)).toMatchObject({ as: 'expired', call: NAME });
  });

  test.each([
    ['a rule denies it', { then: 'deny' }, {}],
    ['the run is unattended', {}, { unattended: 'deny' }],
  ] as const)('is denied at once if %s', (_, verdict, run) => {
    const state = ended(
      { happened: 'undecided', verdict: { ...ASK, ...verdict } },
      { ...undoing(), ...run },
    );
    expect(openRequests(state, 'run')).toEqual([]);
    expect([state.work, undoableCalls(state)]).toMatchObject([
      [],
      [{ state: 'denied', message: 'a rule' }],
    ]);
  });

  test('of a call that the run has forgotten meanwhile ends with the decision', () => {
    const state = { ...asking(), kept: [] };
    const over = after(state, decision(state, 'approve', {}, { name: NAME }));
    expect(over.work).toEqual([]);
    expect(over.decisions?.at(-1)).toMatchObject({ as: 'approve', request: 'r1' });
  });
});

describe('an undo that names no call', () => {
  const older = {
    ...booked().kept?.[0],
    call: { id: 'call_1_0_0', name: 'book', arguments: '{}' },
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a call beside that of the script
  const withOlder = (state: RunState): RunState =>
    ({ ...state, kept: [older, ...(state.kept ?? [])] }) as RunState;

  test('is refused while another is open, which it names', () => {
    expect(undoProblem(withOlder(undoing()), undefined, 20)).toBe(
      `call: ${ID} is being undone; to undo another call, name it: call_1_0_0`,
    );
    expect(undoProblem(withOlder(asking()), undefined, 40)).toBe(
      `call: the undo of ${ID} waits for a decision about request r1; to undo another call, name it: call_1_0_0`,
    );
    expect(undoProblem(withOlder(undoing()), 'call_1_0_0', 20)).toBeNull();
  });

  test('is refused if there is nothing to undo', () => {
    expect(undoProblem(start, undefined, 20)).toBe(
      'call: nothing can be undone: a call that succeeded can be, for a time, if its tool has `undo`',
    );
  });
});

test('an action of a plan can be named by its own id, unless two have it', () => {
  const [kept] = booked().kept ?? [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- calls beside that of the script
  const withCalls = (...ids: readonly string[]): RunState =>
    ({ ...start, kept: ids.map((id) => ({ ...kept, call: { ...kept?.call, id } })) }) as RunState;
  const one = withCalls('node_execute_1.a1', 'node_execute_1.a2');
  const begun2 = after(one, update('undo', { call: 'a2' }, 'u', 20));
  expect(undoProblem(one, 'a2', 20)).toBeNull();
  expect(begun2.decisions).toMatchObject([{ what: 'undo', call: 'node_execute_1.a2' }]);
  expect(undoProblem(begun2, 'a2', 20)).toBe('call: node_execute_1.a2 is being undone');
  expect(undoProblem(withCalls('node_execute_1.a2', 'node_execute_2.a2'), 'a2', 20)).toBe(
    'call: "a2" cannot be undone; undoable: node_execute_1.a2, node_execute_2.a2',
  );
});

test('the undo of a call whose tool can no longer undo is refused', () => {
  const refreshed = reduce(booked(), {
    type: 'agent-refreshed',
    config: config({ tools: [toolDefinition('book', 'keyed'), ...TOOLS] }),
  });
  expect(undoProblem(refreshed, ID, 20)).toContain('the tool "book" can no longer undo');
});

describe('the undo of a call whose tool a newer version of the agent lacks', () => {
  const without = (state: RunState): RunState =>
    reduce(state, { type: 'agent-refreshed', config: config() });
  const fault = 'the agent no longer has tool "book"';

  test('is refused', () => {
    expect(undoProblem(booked(), ID, 20)).toBeNull();
    expect(undoProblem(without(booked()), ID, 20)).toBe(`call: ${ID} cannot be undone; ${fault}`);
  });

  test.each([
    ['approve', 'failed', fault],
    ['deny', 'denied', 'a person denied it'],
  ])('ends with a person’s decision: %s', (as, outcome, message) => {
    const state = without(asking());
    const over = after(state, decision(state, as, {}, { name: NAME }));
    expect(over.work).toEqual([]);
    expect(undoableCalls(over)).toMatchObject([{ state: outcome, message }]);
  });
});
