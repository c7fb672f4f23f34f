import { describe, expect, test } from 'vitest';
import type { CheckDecisionResult } from '../../src/core/guards/recorded.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import type { Verdict } from '../../src/core/definition/rules.js';
import type { RunState } from '../../src/core/state/state.js';
import { getOpenBatch } from '../../src/core/state/turn.js';
import { sha256Hex } from '../../src/core/text/json.js';
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
  completed,
  failed,
  results,
  scheduled,
  toolTask,
  workOf,
} from '../support/facts.js';
import { begun, config, toolDefinition } from '../support/scripts.js';

const ASK: Verdict = { then: 'ask', why: 'a rule' };
const approval = (tool = 'put', rest: Partial<Verdict> = {}): RunState =>
  afterNextAction(runWithCall(tool, { verdict: { ...ASK, ...rest } }));

/** Returns the state after a decision that a worker has checked with this result. */
function checked(state: RunState, fact: ReturnType<typeof decision>, result: CheckDecisionResult) {
  const proposed = after(state, fact);
  const task = checkOf(proposed);
  return after(proposed, scheduled(task), completed(task, result, 50));
}

describe('a request', () => {
  const asked = (rest: object) =>
    requestOf(afterNextAction(runWithCall('put', { verdict: ASK, ...rest })));

  test('shows what was written next to what the tool gets, and covers both', () => {
    const written = { arguments: '{"cc":null,"euros":"9","note":"x"}', digest: 'w' };
    const json = '{"euros":9,"note":"x","unit":"EUR"}';
    const plain = asked(written);
    expect(plain).not.toHaveProperty('parsed');
    const request = asked({ ...written, parsed: { arguments: json, digest: 'p' } });
    expect(request).toMatchObject({ arguments: written.arguments, parsed: json });
    expect(request.shown.split('\n').slice(1)).toEqual([
      'cc: null → (left out)',
      'euros: "9" → 9',
      'note: "x"',
      'unit: (not given) → "EUR"',
    ]);
    const other = asked({ ...written, parsed: { arguments: json, digest: 'q' } });
    expect(new Set([plain, request, other].map(({ digest }) => digest)).size).toBe(3);
  });

  test('names a value in the blob store, and one that is no object', () => {
    const blob = { sha256: 'ab'.repeat(32), bytes: 70_000 };
    const stored = asked({ parsed: { arguments: '{}', digest: 'p', blob } });
    expect(stored).toMatchObject({ parsedBlob: blob });
    expect(stored).not.toHaveProperty('parsed');
    expect(stored.shown).toContain(
      `the tool gets:\n[70.0 kB of arguments, stored as blob ${blob.sha256}]`,
    );
    expect(asked({ parsed: { arguments: '"x"', digest: 'p' } }).shown).toContain(
      'the tool gets:\n"x"',
    );
  });
});

describe('an approval', () => {
  test('lets this call begin, and grants nothing for later ones', () => {
    const yes = after(approval(), decision(approval(), 'approve', { by: 'ann' }, { at: 4 }));
    expect(workOf(yes, ID)).toEqual({ approved: true, phase: 'waiting' });
    expect(nextAction(yes).type).toBe('run-calls');
    expect(yes).not.toHaveProperty('grants');
    expect(yes.decisions).toEqual([
      { what: 'resolve', id: 'u r1', at: 4, by: 'ann', request: 'r1', call: ID, as: 'approve' },
    ]);
  });

  test('with a grant lets the same call of a later step begin without a request', () => {
    const state = approval();
    const grant = { scope: 'same_call' };
    const yes = after(state, decision(state, 'approve', { grant, by: 'ann' }, { at: 4 }));
    expect(yes.grants).toEqual([
      {
        id: 'g1',
        tool: 'put',
        scope: 'same_call',
        digest: sha256Hex('{}'),
        shown: 'put with the same arguments',
        request: 'r1',
        at: 4,
        by: 'ann',
      },
    ]);
    const done = after(
      yes,
      scheduled(toolTask(yes, 0)),
      completed(toolTask(yes, 0), { ok: false, text: 'busy' }),
    );
    expect(nextAction(runWithCall('put', { verdict: ASK }, done)).type).toBe('run-calls');
    const other = runWithCall('put', { verdict: ASK, digest: 'other arguments' }, done);
    expect(nextAction(other).type).toBe('raise-requests');
  });

  test('still applies when the call is retried after its outcome was unknown', () => {
    const state = approval('pay');
    const yes = after(state, decision(state, 'approve'));
    const lost = after(yes, scheduled(toolTask(yes, 0)), failed(toolTask(yes, 0), 'gone'));
    expect(requestOf(lost)).toMatchObject({ id: 'r2', kind: 'outcome_unknown' });
    const again = after(lost, decision(lost, 'retry'));
    expect(workOf(again, ID)).toEqual({
      key: 'key 0',
      approved: true,
      retried: true,
      phase: 'waiting',
    });
    expect(nextAction(again).type).toBe('run-calls');
  });
});

describe('a denial', () => {
  test.each([
    [{}, 'not executed: a person denied it"'],
    [{ note: '' }, 'not executed: a person denied it"'],
    [{ note: 'too dear' }, 'not executed: a person denied it: too dear"'],
  ])('gives the model the reason, as far as the person stated one: %j', (rest, text) => {
    const state = approval();
    expect(results(after(state, decision(state, 'deny', rest)))[0]).toContain(text);
  });
});

describe('an edit', () => {
  const json = '{"n":2}';
  const call = { name: 'put', arguments: json, digest: sha256Hex(json) };
  const edit = (state: RunState, verdict?: Verdict): RunState =>
    checked(state, decision(state, 'edit', { arguments: { n: 2 }, by: 'ann' }), {
      ok: true,
      call: { ...call, ...(verdict && { verdict }) },
    });

  test('waits for a worker that checks the new arguments', () => {
    const state = approval();
    const proposed = after(state, decision(state, 'edit', { arguments: { n: 2 } }, { at: 9 }));
    expect(getOpenBatch(proposed)?.calls[0]?.arguments).toBe('{}');
    expect(requestOf(proposed)).toMatchObject({ id: 'r1', checking: true });
    expect(proposed.decisions).toBeUndefined();
    expect(workOf(proposed, ID)?.['proposal']).toMatchObject({ id: 'u r1', at: 9 });
  });

  test.each<[string, Verdict | undefined]>([
    ['requires nothing', undefined],
    ['requires the same person', { ...ASK, deciders: [['ann']] }],
  ])('approves the call with its new arguments if a rule %s', (_, verdict) => {
    const state = edit(approval('put', { deciders: [['ann']] }), verdict);
    expect(getOpenBatch(state)?.calls[0]).toMatchObject({ id: ID, arguments: json, edited: true });
    expect(workOf(state, ID)).toEqual({ approved: true, phase: 'waiting' });
    expect(openRequests(state, 'run')).toEqual([]);
    const task = toolTask(state, 0);
    const done = after(state, scheduled(task), completed(task, { ok: true, text: 'put' }));
    expect(results(done)[0]).toContain(`changed the arguments before this was executed: ${json}`);
  });

  test('asks again if the rules name other deciders for the new arguments', () => {
    const verdict: Verdict = { ...ASK, why: 'a large sum', deciders: [['boss']], expires: 100 };
    const state = edit(approval('put', { deciders: [['ann']] }), verdict);
    expect(getOpenBatch(state)?.calls[0]?.arguments).toBe(json);
    expect(requestOf(state)).toMatchObject({
      id: 'r2',
      kind: 'approval',
      why: 'a large sum; ann changed the arguments',
      arguments: json,
      deciders: [['boss']],
      raisedAt: 50,
      expiresAt: 150,
    });
    expect(requestOf(state)).not.toHaveProperty('checking');
    expect(state.decisions).toMatchObject([{ request: 'r1', as: 'edit', by: 'ann', at: 0 }]);
  });

  test('asks again if the tool gets something else than the person wrote', () => {
    const parsed = { arguments: '{"n":2,"unit":"EUR"}', digest: 'parsed' };
    const state = approval();
    const fact = decision(state, 'edit', { arguments: { n: 2 } });
    const shown = checked(state, fact, { ok: true, call: { ...call, verdict: ASK, parsed } });
    expect(requestOf(shown)).toMatchObject({ id: 'r2', parsed: parsed.arguments });
    expect(requestOf(shown).shown).toContain('unit: (not given) → "EUR"');
    const yes = after(shown, decision(shown, 'approve'));
    expect(nextAction(yes).type).toBe('run-calls');
    // Nobody is asked about what the rules allow.
    const free = checked(state, fact, { ok: true, call: { ...call, parsed } });
    expect(workOf(free, ID)).toMatchObject({ approved: true });
  });

  test('has no deciders and no time limit if the rules only deny', () => {
    const state = approval();
    const fact = decision(state, 'edit', { arguments: { n: 2 } });
    const denies: Verdict = { then: 'deny', why: 'never so many' };
    const again = checked(state, fact, { ok: true, call: { ...call, verdict: denies } });
    expect(requestOf(again)).toMatchObject({
      why: 'never so many; a person changed the arguments',
      deciders: [],
      expiresAt: null,
    });
  });
});

describe('an answer', () => {
  const result = { text: 'sunny', output: 'sunny' };

  test('by a person instead of the tool is marked as such for the model, and is not an execution', () => {
    const state = approval();
    const done = checked(state, decision(state, 'answer', { result: 'sunny' }), {
      ok: true,
      result,
    });
    expect(results(done)).toEqual([
      '[a person gave this result; the tool was not executed]\nsunny',
    ]);
    expect(done.turn.spent.toolCalls).toBe(0);
    expect(done.work).toEqual([]);
    expect(done.decisions).toMatchObject([{ as: 'answer', call: ID }]);
  });

  test('reports what of it could not be stored', () => {
    const reports = [{ type: 'storage_lost', attempt: 1, waitMs: 0, at: 1, message: 'full' }];
    const state = approval();
    const fact = decision(state, 'answer', { result: 'sunny' });
    const done = checked(state, fact, { ok: true, result: { ...result, reports } });
    expect(done.turn.reports).toEqual(reports);
    expect(done.work).toEqual([]);
  });

  test('to a tool that the caller executes is the result of the call', () => {
    const tools = [toolDefinition('ui', 'keyed', { kind: 'client' })];
    const state = afterNextAction(runWithCall('ui', {}, begun(config({ tools }))));
    expect(requestOf(state).kind).toBe('client_tool');
    const blob = { sha256: 'a'.repeat(64), bytes: 5 };
    const done = checked(state, decision(state, 'answer', { result: 'sunny' }), {
      ok: true,
      result: { ...result, blob },
    });
    expect(results(done)).toEqual(['sunny']);
    expect(done.turn.spent.toolCalls).toBe(1);
    expect(done.transcript.messages.at(-1)).toMatchObject({ callId: ID, blob });
  });
});

test('a run tolerates every decision about every call that needs approval', () => {
  const words = ['approve', 'deny', 'edit', 'answer', 'happened', 'retry', 'abandon', 'accept'];
  const lost = after(
    runWithCall('pay'),
    scheduled(toolTask(runWithCall('pay'), 0)),
    failed(toolTask(runWithCall('pay'), 0), 'gone'),
  );
  for (const state of [approval(), lost]) {
    for (const word of [...words, 'raise', 'stop']) {
      expect(after(state, decision(state, word)).schema).toBe(2);
    }
  }
});
