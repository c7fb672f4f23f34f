import { describe, expect, test } from 'vitest';
import { nextAction, type Action } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import { getOpenBatch } from '../../src/core/state/turn.js';
import {
  afterNextAction,
  runWithCall,
  checkOf,
  decision,
  ID,
  requestOf,
} from '../support/pending-call.js';
import {
  after,
  blocked,
  completed,
  failed,
  model,
  replied,
  results,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import { callReply, begun, config, textReply, toolDefinition, TOOLS } from '../support/scripts.js';

const VERDICT = { then: 'ask', why: 'a rule' } as const;
const start = begun(config());
const typeOf = (state: RunState): Action['type'] => nextAction(state).type;

/** Returns the state with the undo of an earlier call in flight. */
const undoing = (state: RunState): RunState => ({
  ...state,
  work: [{ name: 'undo:call_0_0_0', phase: 'in-flight', as: 'attempt' }],
});

describe('a run that is about to end', () => {
  test('waits until a parallel undo has ended', () => {
    const done = reduce(replied(start, textReply('hi')), { type: 'turn-recorded', at: 1 });
    expect(typeOf(undoing(done))).toBe('await-work');
    expect(typeOf(done)).toBe('finish');
  });

  test('waits until its messages are archived before it records its turn', () => {
    const task = { activity: 'archiveMessages', input: { archive: { from: 0, to: 1 } } };
    const archiving = after({ ...start, archives: true }, scheduled(task));
    const over = reduce(archiving, { type: 'turn-interrupted', by: 'cancelTurn', at: 1 });
    const still = { ...over, work: archiving.work };
    expect([typeOf(still), typeOf(over)]).toEqual(['await-work', 'record-turn']);
  });

  test('waits for an activity of a call that is over', () => {
    const task = toolTask(runWithCall('look'), 0);
    const done = after(
      runWithCall('look'),
      scheduled(task),
      completed(task, { ok: true, text: 'a' }),
    );
    expect(typeOf(after(done, scheduled(task)))).toBe('await-work');
    expect(typeOf(undoing(done))).toBe('call-model');
  });
});

test('a decision about a limit is checked if a worker checks who may decide', () => {
  const agent = config({ onLimit: 'ask', limits: { steps: 1 } });
  const strict = begun({ ...agent, decisions: { mayDecide: true } });
  const state = afterNextAction(replied(strict, callReply(['nothing'])));
  const fact = decision(state, 'raise', { arguments: { steps: 2 } }, { name: 'limit' });
  const proposed = after(state, fact);
  expect([typeOf(state), typeOf(proposed)]).toEqual(['await-decision', 'check-decision']);
  const raised = after(proposed, completed(checkOf(proposed, 'limit'), { ok: true }));
  expect(nextAction(raised)).toMatchObject({ type: 'call-model', closing: false });
  expect(raised.config.limits.turn.steps).toBe(3);
});

describe('messages that will be summarized', () => {
  const replies = [callReply(['nothing', 0]), callReply(['nothing', 1]), callReply(['nothing', 2])];
  const long = (): RunState => {
    const state = replies.reduce((before, reply) => replied(before, reply), start);
    const compaction = { ...state.compaction, wanted: true };
    return { ...state, compaction, archives: true };
  };
  const cutOf = (state: RunState): number => {
    const action = nextAction(state);
    return action.type === 'archive' ? action.cut : 0;
  };

  test('need no archive if they are already in a chunk', () => {
    const state = long();
    const cut = cutOf(state);
    const chunk = { blob: { sha256: 'a'.repeat(64), bytes: 1 }, count: 2 };
    const chunked = reduce(state, { type: 'messages-archived', archived: cut, chunk });
    expect(nextAction(chunked)).toMatchObject({ type: 'compact', cut });
  });

  test('include a summary, which has a higher number than the messages after it', () => {
    const state = long();
    const [first, ...rest] = state.transcript.messages;
    const summary = first === undefined ? [] : [{ ...first, n: 90 }];
    const messages = [...summary, ...rest];
    const at = (archived: number): RunState => ({
      ...state,
      archived,
      transcript: { ...state.transcript, messages },
    });
    // `archived` is the number of the first message that is not in the archive.
    expect([typeOf(at(90)), typeOf(at(91))]).toEqual(['archive', 'compact']);
  });

  test('include refused answers, which have to be archived, too', () => {
    const state = { ...long(), archived: cutOf(long()) };
    expect(typeOf(state)).toBe('compact');
    const [message] = state.transcript.messages;
    const refused = message === undefined ? [] : [{ ...message, n: 90 }];
    const pruned = { ...state, transcript: { ...state.transcript, pruned: refused } };
    expect(typeOf(pruned)).toBe('archive');
  });
});

describe('a wait that needs approval by a rule', () => {
  const tools = [...TOOLS, toolDefinition('nap', 'read', { repeat: 'allow', kind: 'wait' })];
  const nap = runWithCall(
    'nap',
    { arguments: '{"seconds":5}', verdict: VERDICT },
    begun(config({ tools })),
  );

  test('begins with the approval', () => {
    expect(typeOf(nap)).toBe('raise-requests');
    const asking = afterNextAction(nap);
    expect(typeOf(asking)).toBe('await-decision');
    const approved = after(asking, decision(asking, 'approve'));
    expect(nextAction(approved)).toEqual({ type: 'await-time', until: 5_000 });
  });
});

test('`resume` keeps a request whose call is retried', () => {
  const state = runWithCall('look');
  const probe = toolTask(state, 0, { blocked: 'tool_changed' });
  const changed = after(
    state,
    scheduled(toolTask(state, 0)),
    blocked(toolTask(state, 0), 'tool_changed', { definition: 'd' }),
    scheduled(probe),
    update('resume', {}, 'u1'),
    blocked(probe, 'tool_changed', { definition: 'd' }, 9),
  );
  // The next attempt follows at once, because a person has requested it meanwhile.
  expect(workOf(changed, ID)).not.toHaveProperty('block');
  expect(workOf(changed, ID)).toMatchObject({
    phase: 'waiting',
    request: { id: 'r1', kind: 'tool_changed', raisedAt: 0 },
  });
  expect(requestOf(after(changed, update('resume', {}, 'u2'))).id).toBe('r1');
  const again = after(
    changed,
    scheduled(probe),
    blocked(probe, 'tool_changed', { definition: 'd' }, 20),
  );
  expect(workOf(again, ID)).toMatchObject({ phase: 'waiting', block: { until: 120_020 } });
});

describe('a call whose tool can verify its outcome', () => {
  const tools = [toolDefinition('refund', 'once', { verify: true })];
  const verified = (result: object): RunState => {
    const asking = afterNextAction(
      runWithCall('refund', { verdict: VERDICT }, begun(config({ tools }))),
    );
    const approved = after(asking, decision(asking, 'approve'));
    const task = toolTask(approved, 0);
    const verify = { ...task, activity: 'runFunction' };
    const lost = after(approved, scheduled(task), failed(task, 'gone'));
    return after(lost, scheduled(verify), completed(verify, result));
  };

  test('needs no second approval if it has not happened', () => {
    const state = verified({ happened: false });
    expect(workOf(state, ID)).toMatchObject({ approved: true, retried: true });
    expect(typeOf(state)).toBe('run-calls');
  });

  test('stays approved while a person checks its outcome', () => {
    const state = verified({ happened: 'unknown', message: 'no idea' });
    expect(workOf(state, ID)).toMatchObject({ approved: true, phase: 'asking' });
    const again = after(state, decision(state, 'retry'));
    expect(typeOf(again)).toBe('run-calls');
  });
});

test('a third identical call gets the id of the one that was executed', () => {
  const task = toolTask(runWithCall('put'), 0);
  const done = after(
    runWithCall('put'),
    scheduled(task),
    completed(task, { ok: true, text: 'put' }),
  );
  const twice = replied(replied(done, callReply(['put'])), callReply(['put']));
  const note = (id: string): string =>
    `[identical to ${id} in this turn; not executed again. Its result:]\nput`;
  expect(results(twice)).toEqual(['put', note(ID), note(ID)]);
  expect(twice.turn.spent.toolCalls).toBe(1);
});

test('a list of artifacts is not an execution, so it does not end a sequence of denied calls', () => {
  const tools = [...TOOLS, toolDefinition('list_artifacts', 'read', { kind: 'artifacts' })];
  const asking = afterNextAction(
    runWithCall('put', { verdict: VERDICT }, begun(config({ tools }))),
  );
  const denied = after(asking, decision(asking, 'deny'));
  const listed = replied(denied, callReply(['list_artifacts']));
  expect([denied.turn.denials, listed.turn.denials]).toEqual([1, 1]);
  const look = replied(listed, callReply(['look']));
  const task = toolTask(look, 0);
  const seen = after(look, scheduled(task), completed(task, { ok: true, text: 'seen' }));
  expect([seen.turn.denials, getOpenBatch(seen)]).toEqual([0, null]);
  expect(nextAction(after(seen, scheduled(model()))).type).toBe('call-model');
});
