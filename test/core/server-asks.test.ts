import { describe, expect, test } from 'vitest';
import { nextAction } from '../../src/core/run/next-action.js';
import type { RunState } from '../../src/core/state/state.js';
import type { ServerAnswer } from '../../src/core/transcript/request.js';
import {
  after,
  blocked,
  completed,
  failed,
  results,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import {
  afterNextAction,
  checkOf,
  decision,
  ID,
  requestOf,
  runWithCall,
} from '../support/pending-call.js';
import { begun, config, toolDefinition } from '../support/scripts.js';

const mcp = { server: 'shop', tool: 'deploy', hash: 'h' };
const tools = [
  toolDefinition('deploy', 'keyed', { mcp, expiresMs: 100 }),
  toolDefinition('patient', 'keyed', { mcp }),
];
const start = begun(config({ tools }));
const form = { type: 'object', properties: { name: { type: 'string' } } };
const NAME = { key: 'name', message: 'Your name?', form };
const LINK = { key: 'link', message: 'Pay here', url: 'https://pay.example/1' };

/** Returns the state after the next attempt of the call, whose server asks. */
function asked(from: RunState, result: object, at = 0): RunState {
  const task = toolTask(from, 0);
  const asks = { ok: 'input_required', asks: [], ...result };
  return after(from, scheduled(task, at), completed(task, asks, at));
}

/** Returns the state after a person's answer that a worker has checked. */
function answered(state: RunState, answer: ServerAnswer, at = 0): RunState {
  const proposed = after(state, decision(state, 'answer', { result: 'x' }, { at }));
  const task = checkOf(proposed);
  return after(proposed, scheduled(task, at), completed(task, { ok: true, answer }, at));
}

describe('a server that asks before it executes a call', () => {
  const asking = (): RunState =>
    asked(runWithCall('deploy', {}, start), { asks: [NAME, LINK], state: 's' }, 7);

  test('makes the run ask a person, one request at a time', () => {
    const state = asking();
    expect(requestOf(state)).toMatchObject({
      id: 'r1',
      kind: 'question',
      why: 'MCP server "shop" asks before it executes deploy (1 of 2)',
      question: 'Your name?',
      server: 'shop',
      form,
      raisedAt: 7,
      expiresAt: 107,
      deciders: [],
    });
    expect(requestOf(state).decisions).toEqual(['answer', 'deny', 'abandon']);
    expect(nextAction(state)).toEqual({ type: 'await-decision' });
    const named = answered(state, { action: 'accept', content: { name: 'Ann' } }, 9);
    expect(requestOf(named)).toMatchObject({ id: 'r2', question: 'Pay here', raisedAt: 9 });
    expect(named.decisions).toMatchObject([{ request: 'r1', as: 'answer', call: ID }]);
  });

  test('gets all answers with the next attempt, and its own data unchanged', () => {
    const named = answered(asking(), { action: 'accept', content: { name: 'Ann' } });
    const both = answered(named, { action: 'accept' });
    const answers = [{ action: 'accept', content: { name: 'Ann' } }, { action: 'accept' }];
    const sent = { asks: [NAME, LINK], answers, state: 's', rounds: 1 };
    expect(workOf(both, ID)).toEqual({ asked: sent, phase: 'waiting' });
    expect(nextAction(both).type).toBe('run-calls');
    const task = toolTask(both, 0);
    const done = after(both, scheduled(task), completed(task, { ok: true, text: 'deployed' }));
    expect([results(done), done.work]).toEqual([['deployed'], []]);
  });

  test.each([
    ['deny', 'decline'],
    ['abandon', 'cancel'],
  ])('is told of the decision %s: %s', (as, action) => {
    const one = asked(runWithCall('deploy', {}, start), { asks: [LINK] });
    const refused = after(one, decision(one, as));
    const sent = { asks: [LINK], answers: [{ action }], rounds: 1 };
    expect(workOf(refused, ID)).toEqual({ asked: sent, phase: 'waiting' });
    expect(refused.decisions).toMatchObject([{ request: 'r1', as, call: ID }]);
  });

  test('is told nothing by an answer whose check found none', () => {
    const state = asking();
    const proposed = after(state, decision(state, 'answer', { result: 'x' }));
    const task = checkOf(proposed);
    const result = { ok: true, result: { text: 'x' } };
    const next = after(proposed, scheduled(task), completed(task, result));
    expect(workOf(next, ID)?.['asked']).toMatchObject({ answers: [] });
    expect(requestOf(next).id).toBe('r1');
  });

  test('is told that a request has expired, and the next one has its own time', () => {
    const late = after(asking(), { type: 'clock', at: 107 });
    expect(workOf(late, ID)?.['asked']).toMatchObject({ answers: [{ action: 'cancel' }] });
    expect(requestOf(late)).toMatchObject({ id: 'r2', raisedAt: 107, expiresAt: 207 });
    expect(late.decisions).toMatchObject([{ request: 'r1', as: 'expired', call: ID }]);
    const over = after(late, { type: 'clock', at: 207 });
    expect(nextAction(over).type).toBe('run-calls');
    expect(results(over)).toEqual([]);
  });

  test('gets `cancel` at once if nobody can be asked', () => {
    const alone = asked(runWithCall('deploy', {}, { ...start, unattended: 'deny' }), {
      asks: [NAME, LINK],
    });
    const answers = [{ action: 'cancel' }, { action: 'cancel' }];
    expect(workOf(alone, ID)).toEqual({
      asked: { asks: [NAME, LINK], answers, rounds: 1 },
      phase: 'waiting',
    });
    expect(nextAction(alone).type).toBe('run-calls');
  });

  test('asks only who may decide about the call', () => {
    const verdict = { then: 'ask', why: 'a rule', deciders: [['boss']] } as const;
    const approval = afterNextAction(runWithCall('deploy', { verdict }, start));
    const yes = after(approval, decision(approval, 'approve', { by: 'boss' }));
    const next = asked(yes, { asks: [NAME] });
    expect(requestOf(next)).toMatchObject({ id: 'r2', deciders: [['boss']] });
    expect(workOf(next, ID)).toMatchObject({ approved: true, phase: 'asking' });
  });

  test('may be waited for without a time limit', () => {
    const patient = asked(runWithCall('patient', {}, start), { asks: [NAME] });
    expect(requestOf(patient)).toMatchObject({ expiresAt: null });
  });
});

describe('a server that asks nothing', () => {
  test('gets the same call later, after a pause that doubles', () => {
    let state = runWithCall('deploy', {}, start);
    const pauses: unknown[] = [];
    for (let round = 0; round < 10; round += 1) {
      state = asked(state, { state: `${round}` }, 50);
      pauses.push(workOf(state, ID)?.['startAt']);
    }
    expect(pauses).toEqual([
      1_050, 2_050, 4_050, 8_050, 16_050, 32_050, 64_050, 128_050, 256_050, 512_050,
    ]);
    expect(workOf(state, ID)).toMatchObject({ asked: { state: '9', rounds: 10 } });
    expect(results(asked(state, {}))).toEqual([
      '{"error":{"type":"tool_error","message":"MCP server \\"shop\\" asks for input again after 10 times; it has not executed the call"}}',
    ]);
  });
});

describe('an attempt whose server asks', () => {
  test('has not executed the call, so nothing of it counts but the rounds', () => {
    const state = runWithCall('deploy', {}, start);
    const task = toolTask(state, 0);
    const again = after(
      state,
      scheduled(task),
      completed(task, { ok: 'not_started', message: 'no input' }),
      scheduled(task),
      blocked(task, 'credentials'),
    );
    expect(workOf(again, ID)).toMatchObject({ starts: 1, probeMs: 30_000 });
    const sent = { asks: [LINK], answers: [{ action: 'decline' }], rounds: 1 };
    const one = asked(again, { asks: [LINK] });
    const declined = after(one, decision(one, 'deny'));
    expect(workOf(declined, ID)).toEqual({ asked: sent, phase: 'waiting' });
    const two = asked(declined, { asks: [LINK] });
    expect(requestOf(two).why).toContain('for the second time');
  });

  test('keeps that an earlier execution may have begun', () => {
    const once = begun(config({ tools: [toolDefinition('deploy', 'once', { mcp })] }));
    const state = runWithCall('deploy', {}, once);
    const lost = after(state, scheduled(toolTask(state, 0)), failed(toolTask(state, 0), 'gone'));
    const retried = after(lost, decision(lost, 'retry'));
    expect(workOf(asked(retried, { asks: [LINK] }), ID)).toMatchObject({ retried: true });
  });

  test('keeps the grant, also if it asks too often', () => {
    const verdict = { then: 'ask', why: 'a rule' } as const;
    const asking = afterNextAction(runWithCall('deploy', { verdict }, start));
    const yes = after(asking, decision(asking, 'approve', { grant: { scope: 'tool' } }));
    const task = toolTask(yes, 0);
    const done = after(yes, scheduled(task), completed(task, { ok: false, text: 'busy' }));
    let state = runWithCall('deploy', { verdict }, done);
    const name = 'call_1_2_0';
    for (let round = 0; round < 10; round += 1) {
      state = asked(state, {});
      expect(workOf(state, name)).toMatchObject({ grant: 'g1' });
      expect(workOf(state, name)).not.toHaveProperty('approved');
    }
    expect(asked(state, {}).transcript.messages.at(-1)).toMatchObject({ grant: 'g1' });
  });
});

test('`resume` has no effect on a call whose server asks', () => {
  const state = asked(runWithCall('deploy', {}, start), { asks: [NAME] });
  expect(after(state, update('resume')).work).toEqual(state.work);
});
