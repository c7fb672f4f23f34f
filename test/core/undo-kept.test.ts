import { describe, expect, test } from 'vitest';
import type { RunFunctionResult } from '../../src/core/guards/recorded.js';
import { decisionProblem, standingOf } from '../../src/core/requests/refusal.js';
import type { Task } from '../../src/core/run/events.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { RunState } from '../../src/core/state/state.js';
import { undoableCalls } from '../../src/core/state/undo.js';
import { after, completed, replied, scheduled, toolTask, update } from '../support/facts.js';
import { ID, decision, requestOf, runWithCall } from '../support/pending-call.js';
import { TOOLS, begun, callReply, config, toolDefinition } from '../support/scripts.js';

const NAME = `undo:${ID}`;
const tools = [toolDefinition('book', 'keyed', { undoMs: 1_000 }), ...TOOLS];
const start = begun(config({ tools }));

/** A run that booked at the time 10. */
function booked(): RunState {
  const state = runWithCall('book', {}, start);
  const task = toolTask(state, 0);
  return after(state, scheduled(task, 10), completed(task, { ok: true, text: 'booking 7' }, 10));
}

const TASK: Task = { activity: 'runFunction', input: { function: 'undo', call: { id: ID } } };

/** A run that is undoing its booking. */
const undoing = (state = booked()): RunState =>
  after(state, update('undo', { call: ID, by: 'ann' }, 'u', 20), scheduled(TASK, 20));

const ended = (result: RunFunctionResult, state = undoing()): RunState =>
  after(state, completed(TASK, result, 30));

const ASK = { then: 'ask', why: 'a rule' } as const;
const asking = (): RunState => ended({ happened: 'undecided', verdict: ASK });

/** A run whose model calls `book` with this number, and gets its result. */
function alsoBooked(from: RunState, number: number): RunState {
  const state = replied(from, callReply(['book', { number }]), 100);
  const task = toolTask(state, 0);
  return after(state, scheduled(task, 100), completed(task, { ok: true, text: 'more' }, 100));
}

/** A run that has booked 25 more times, which is more than it keeps. */
const later = (from: RunState): RunState =>
  Array.from({ length: 25 }, (_, number) => number).reduce(alsoBooked, from);

describe('a call whose undo has not ended', () => {
  test('is kept beside the newest ones, so that a person sees and decides what was requested', () => {
    const before = requestOf(asking(), NAME);
    const state = later(asking());
    expect(requestOf(state, NAME)).toEqual(before);
    expect(state.kept).toHaveLength(21);
    const yes = after(state, decision(state, 'approve', {}, { name: NAME }));
    expect(yes.work).toMatchObject([{ name: NAME, approved: true, phase: 'waiting' }]);
  });

  test('is kept until its undo has ended, of which the model is informed', () => {
    const state = ended({ happened: true, result: { ok: true, text: 'gone' } }, later(undoing()));
    expect(undoableCalls(state)[0]).toMatchObject({ call: ID, state: 'undone' });
    expect(state.notes).toHaveLength(1);
    expect(undoableCalls(alsoBooked(state, 99)).map(({ call }) => call)).not.toContain(ID);
  });

  test('is dropped with the others in the run of an earlier version', () => {
    const { revised: _, ...earlier } = asking().config;
    expect(undoableCalls(later({ ...asking(), config: earlier }))).toHaveLength(20);
  });
});

describe('an identical call in the same turn', () => {
  const undone = ended({ happened: true, result: { ok: true, text: 'gone' } });
  const isExecuted = (state: RunState): boolean =>
    nextAction(replied(state, callReply(['book']))).type === 'run-calls';

  test('is executed if the first one was undone, and only then', () => {
    expect(isExecuted(undone)).toBe(true);
    expect(isExecuted(undoing())).toBe(false);
    expect(isExecuted(ended({ happened: false }))).toBe(false);
  });

  test('is executed if the first one was undone before the other calls of its message had ended', () => {
    const both = replied(start, callReply(['book'], ['look']));
    const [book, look] = [toolTask(both, 0), toolTask(both, 1)];
    const early = after(
      both,
      scheduled(book, 10),
      completed(book, { ok: true, text: 'booking 7' }, 10),
      update('undo', { call: ID }, 'u', 20),
      scheduled(TASK, 20),
      completed(TASK, { happened: true, result: { ok: true, text: 'gone' } }, 30),
      scheduled(look, 40),
      completed(look, { ok: true, text: 'seen' }, 40),
    );
    expect(undoableCalls(early)).toMatchObject([{ state: 'undone' }]);
    expect(isExecuted(early)).toBe(true);
  });

  test('is answered from the record as before in the run of an earlier version', () => {
    const { revised: _, ...earlier } = undone.config;
    const state = undoing({ ...booked(), config: earlier });
    const over = ended({ happened: true, result: { ok: true, text: 'gone' } }, state);
    expect(isExecuted(over)).toBe(false);
  });
});

describe('the requester of an undo', () => {
  const of = (by: object): RunState => {
    const ann = { ...booked(), turn: { ...booked().turn, by: ['ann'] } };
    const asked = after(ann, update('undo', { call: ID, ...by }, 'u', 20), scheduled(TASK, 20));
    const verdict = { ...ASK, deciders: ['not_requester'] } as const;
    return ended({ happened: 'undecided', verdict }, asked);
  };
  const problemFor = (state: RunState, by: string): string | undefined => {
    const { id: request, digest } = requestOf(state, NAME);
    const given = { request, digest, as: 'approve', by };
    return decisionProblem(state, given, { update: 'v', now: 40 })?.message;
  };
  const zoe = of({ by: 'zoe', door: 'http' });

  test('is who has requested it, and not who has sent the messages of the turn', () => {
    expect(requestOf(zoe, NAME)).toMatchObject({ requester: 'zoe', requesterDoor: 'http' });
    expect(problemFor(zoe, 'zoe')).toContain('expected anyone but the requester, got "zoe"');
    expect(problemFor(zoe, 'ann')).toBeUndefined();
    expect(standingOf(zoe, requestOf(zoe, NAME), 'zoe').name).toBe('other');
  });

  test('is the same after an approval, of which the rules then want another', () => {
    const approved = after(zoe, decision(zoe, 'approve', { by: 'ann' }, { name: NAME, at: 40 }));
    const verdict = { ...ASK, deciders: ['not_requester'] } as const;
    const again = ended({ happened: 'undecided', verdict }, after(approved, scheduled(TASK, 50)));
    expect(requestOf(again, NAME)).toMatchObject({ id: 'r2', requester: 'zoe' });
  });

  test('is unknown without a name, so that no one else is known', () => {
    const state = of({});
    expect(requestOf(state, NAME).requester).toBeNull();
    expect(problemFor(state, 'zoe')).toContain('the run does not know its requester');
  });

  test('is the sender of the messages in the run of an earlier version', () => {
    const { revised: _, ...earlier } = zoe.config;
    const state = { ...zoe, config: earlier };
    expect(requestOf(state, NAME).requester).toBe('ann');
    expect(problemFor(state, 'zoe')).toBeUndefined();
  });
});
