import { describe, expect, test } from 'vitest';
import { interpret } from '../../src/core/interpret/interpret.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunConfig } from '../../src/core/state/state.js';
import { waitingFor } from '../../src/history/projection.js';
import { afterNextAction, runWithCall, decision, ID } from '../support/pending-call.js';
import {
  after,
  blocked,
  completed,
  model,
  results,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import { begun, config } from '../support/scripts.js';

const start = begun(config());
const pause = (input: unknown) => ({ type: 'signal', name: 'pause', input, at: 7 }) as const;

describe('the signal `resume`', () => {
  const resume = (input: unknown) => ({ type: 'signal', name: 'resume', input, at: 9 }) as const;

  test('resumes a paused run, and records who sent it', () => {
    const state = after(after(start, pause({ by: 'ann' })), resume({ by: 'bob' }));
    expect(state.paused).toBe(false);
    expect(state.decisions?.at(-1)).toEqual({ what: 'resume', id: '', at: 9, by: 'bob' });
  });

  test('retries the blocked work of a run that is not paused', () => {
    const stuck = after(start, scheduled(model()), blocked(model(), 'quota'));
    const state = after(stuck, resume({ by: 'bob' }));
    expect(workOf(state, 'model')).toEqual({ probeMs: 30_000, phase: 'waiting' });
    expect(state.decisions).toEqual([{ what: 'resume', id: '', at: 9, by: 'bob' }]);
  });

  test('changes nothing in a run that is neither paused nor blocked', () => {
    expect(after(start, resume({ by: 'bob' }))).toEqual(start);
  });
});

describe('the signal `pause`', () => {
  test('pauses the run, and records who sent it', () => {
    const state = after(start, pause({ by: 'ann' }));
    expect(nextAction(state).type).toBe('await-resume');
    expect(state.decisions).toEqual([{ what: 'pause', id: '', at: 7, by: 'ann' }]);
  });

  test('is no decision in a paused run, nor is the update', () => {
    const state = after(start, pause({ by: 'ann' }));
    expect(after(state, pause({ by: 'bob' }))).toEqual(state);
    expect(after(state, update('pause', { by: 'bob' }, 'u', 9))).toEqual(state);
  });

  test.each([
    [undefined],
    [null],
    ['ann'],
    [{}],
    [{ by: '' }],
    [{ by: 7 }],
    [{ by: 'x'.repeat(201) }],
  ])(
    'pauses the run whatever the signal contains, because no sender could be informed: %j',
    (input) => {
      const state = after(start, pause(input));
      expect(state.paused).toBe(true);
      expect(state.decisions).toEqual([{ what: 'pause', id: '', at: 7 }]);
    },
  );

  test('changes nothing if the run is paused', () => {
    const paused = after(start, update('pause'));
    expect(after(paused, pause({ by: 'ann' }))).toEqual(paused);
  });
});

test('resume of a run that is not paused retries blocked work', () => {
  const state = after(start, update('resume', { by: 'ann' }, 'u', 3));
  expect(state.paused).toBe(false);
  expect(state.decisions).toEqual([{ what: 'resume', id: 'u', at: 3, by: 'ann' }]);
  const types = interpret(start, update('resume')).map(({ type }) => type);
  expect(types).toEqual(['decision-recorded']);
});

test('a paused run with an approved call waits for `resume`, unless the call is in flight', () => {
  const verdict = { then: 'ask', why: 'a rule' } as const;
  const asking = after(afterNextAction(runWithCall('put', { verdict })), pause({}));
  const view = { inFlight: new Map(), ended: null };
  const approved = after(asking, decision(asking, 'approve'));
  expect(waitingFor({ ...view, state: approved })).toEqual({ type: 'paused' });
  const running = after(approved, scheduled(toolTask(approved, 0)));
  expect(waitingFor({ ...view, state: running })).toBeNull();
  const resumed = after(approved, update('resume'));
  expect(waitingFor({ ...view, state: resumed })).toBeNull();
});

describe('a grant', () => {
  const verdict = { then: 'ask', why: 'a rule' } as const;
  const asking = afterNextAction(runWithCall('put', { verdict }));
  const grant = { scope: 'tool' };
  const granted = after(asking, decision(asking, 'approve', { grant }));
  const task = toolTask(granted, 0);
  const done = after(granted, scheduled(task), completed(task, { ok: true, text: 'put' }));
  const later = { verdict, digest: 'other', arguments: '{"n":1}' };
  const NEXT = 'call_1_2_0';

  test('is named by each call that is made under it, and by no other', () => {
    expect(workOf(after(granted, scheduled(task)), ID)).not.toHaveProperty('grant');
    expect(done.transcript.messages.at(-1)).not.toHaveProperty('grant');
    const again = runWithCall('put', later, done);
    expect(nextAction(again).type).toBe('run-calls');
    const running = after(again, scheduled(toolTask(again, 0)));
    expect(workOf(running, NEXT)).toMatchObject({ grant: 'g1' });
    for (const [result, text] of [
      [{ ok: true, text: 'put again' }, 'put again'],
      [{ ok: false, text: 'no' }, 'no'],
    ] as const) {
      const ended = after(running, completed(toolTask(again, 0), result));
      expect(ended.transcript.messages.at(-1)).toMatchObject({ callId: NEXT, text, grant: 'g1' });
    }
  });

  test('holds only for what was written and for what the tool gets', () => {
    const where = { not: { op: 'over', path: 'euros', value: 50 } };
    const small = after(asking, decision(asking, 'approve', { grant: { scope: 'tool', where } }));
    const paid = after(small, scheduled(task), completed(task, { ok: true, text: 'put' }));
    const next = (args: string, parsed?: string) =>
      nextAction(
        runWithCall(
          'put',
          {
            verdict,
            digest: args,
            arguments: args,
            ...(parsed !== undefined && { parsed: { arguments: parsed, digest: parsed } }),
          },
          paid,
        ),
      ).type;
    expect(next('{"euros":5}')).toBe('run-calls');
    expect(next('{"euros":"5"}', '{"euros":5}')).toBe('run-calls');
    expect(next('{"euros":"99999"}', '{"euros":99999}')).toBe('raise-requests');
    expect(next('{}', '{"euros":77777}')).toBe('raise-requests');
  });

  test('for the same call holds only as long as the tool gets the same', () => {
    const parsed = { arguments: '{"euros":7}', digest: 'p1' };
    const first = afterNextAction(runWithCall('put', { verdict, parsed }));
    const same = after(first, decision(first, 'approve', { grant: { scope: 'same_call' } }));
    const paid = after(same, scheduled(task), completed(task, { ok: true, text: 'put' }));
    const turn = { ...paid, turn: { ...paid.turn, succeeded: [] } };
    expect(nextAction(runWithCall('put', { verdict, parsed }, turn)).type).toBe('run-calls');
    const other = { arguments: '{"euros":8}', digest: 'p2' };
    const changed = runWithCall('put', { verdict, parsed: other }, turn);
    expect(nextAction(changed).type).toBe('raise-requests');
    expect(nextAction(runWithCall('put', { verdict }, turn)).type).toBe('raise-requests');
  });

  test('allows no further call after it is revoked', () => {
    const revoked = after(done, update('revoke', { grant: 'g1', by: 'ann' }, 'u', 5));
    expect(revoked.grants).toEqual([]);
    expect(revoked.decisions?.at(-1)).toEqual({
      what: 'revoke',
      id: 'u',
      at: 5,
      by: 'ann',
      grant: 'g1',
    });
    expect(nextAction(runWithCall('put', later, revoked)).type).toBe('raise-requests');
  });

  test('ends when a newer agent has another tool of that name', () => {
    const [put] = done.config.definition.tools.filter(({ name }) => name === 'put');
    if (put === undefined) throw new Error('expected the tool');
    const others = done.config.definition.tools.filter((one) => one !== put);
    const refreshed = (tools: RunConfig['definition']['tools'], rest: Partial<RunConfig> = {}) =>
      reduce(done, {
        type: 'agent-refreshed',
        config: { ...config({ tools }), endsGrants: true, ...rest },
      });
    const changed: readonly Partial<typeof put>[] = [
      { description: 'Deletes everything.' },
      { parameters: { type: 'object', properties: { all: { type: 'boolean' } } } },
      { effect: 'once' },
      { mcp: { server: 's', tool: 'put', hash: 'h2' } },
    ];
    for (const part of changed) {
      const next = refreshed([...others, { ...put, ...part }]);
      expect(next.grants).toEqual([]);
      expect(next.config).not.toHaveProperty('endsGrants');
      expect(nextAction(runWithCall('put', later, next)).type).toBe('raise-requests');
    }
    expect(refreshed(others).grants).toEqual([]);
    const [other, ...rest] = others;
    const same = other === undefined ? rest : [...rest, { ...other, description: 'Another.' }];
    expect(refreshed([...same, structuredClone(put)]).grants).toHaveLength(1);
    // A history that an earlier version recorded is replayed as it happened.
    const earlier = { ...config({ tools: others }) };
    expect(reduce(done, { type: 'agent-refreshed', config: earlier }).grants).toHaveLength(1);
  });

  test('remains if another one is revoked', () => {
    for (const input of [{ grant: 'g2' }, { grant: 7 }, {}]) {
      expect(after(done, update('revoke', input, 'u')).grants).toHaveLength(1);
    }
    expect(results(done)).toEqual(['put']);
  });
});
