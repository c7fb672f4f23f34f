import { describe, expect, test } from 'vitest';
import { unloadedConfig } from '../../src/core/rules/limits.js';
import { fitsActivity } from '../../src/core/interpret/interpret.js';
import type { Fact, Task } from '../../src/core/run/events.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { findWork } from '../../src/core/state/work.js';
import { getOpenBatch, getOutcome } from '../../src/core/state/turn.js';
import { afterNextAction, runWithCall, checkOf, ID, requestOf } from '../support/pending-call.js';
import {
  after,
  blocked,
  canceled,
  completed,
  failed,
  model,
  replied,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';

const CHUNK = { blob: { sha256: 'a'.repeat(64), bytes: 1 }, count: 2 };
const ACTIVITIES: readonly (readonly [string, unknown])[] = [
  ['loadAgent', config()],
  ['callModel', textReply('x')],
  ['runTool', { ok: true, text: '' }],
  ['runFunction', { happened: false }],
  ['checkDecision', { ok: true }],
  ['notifyRequest', null],
  ['retrieveDocuments', { documents: [] }],
  ['archiveMessages', {}],
  [
    'forkMessages',
    { chunk: CHUNK, head: 'b'.repeat(32), tokens: 9, next: 2, from: { runId: 'r' } },
  ],
  ['checkBlob', null],
  ['followRun', { type: 'lost' }],
  ['agent', null],
];
const INPUTS: readonly unknown[] = [
  null,
  {},
  { call: null, request: null, archive: null, chunk: null, run: null, work: null },
  { call: 7, request: 'r1', archive: 7, chunk: 'x', run: 7, work: 7, compact: 'x', cut: 'x' },
];

describe('a history with activities that were completed by hand', () => {
  const states: readonly (readonly [string, RunState])[] = [
    ['a run at its start', initialState(unloadedConfig('a'), { open: true })],
    ['a run that is calling its model', after(begun(config()), scheduled(model()))],
    [
      'a run that is executing a call',
      after(runWithCall('look'), scheduled(toolTask(runWithCall('look'), 0))),
    ],
    [
      'a run that asks',
      afterNextAction(runWithCall('put', { verdict: { then: 'ask', why: 'a rule' } })),
    ],
  ];

  test.each(states)('is tolerated, whatever its inputs are, by %s', (_, state) => {
    for (const [activity, result] of ACTIVITIES) {
      for (const input of INPUTS) {
        const task: Task = { activity, input };
        const ends: readonly Fact[] = [
          completed(task, result),
          blocked(task, 'storage'),
          canceled(task),
        ];
        for (const end of ends) {
          for (const facts of [[end], [scheduled(task), end]]) {
            expect(nextAction(after(state, ...facts)).type).not.toBe('');
          }
        }
      }
    }
  });

  test.each(['update', 'signal'] as const)('is tolerated with any input of the %s', (type) => {
    const [, [, state] = ['', begun(config())]] = states;
    for (const name of ['ask', 'resolve', 'undo', 'revoke', 'setLimits', 'pause', 'message']) {
      for (const input of [...INPUTS, 'x', [null], [{}]]) {
        const fact = type === 'update' ? update(name) : ({ type, name, at: 0 } as const);
        const next = after(state, { ...fact, input } as Fact);
        expect(next.transcript).toEqual(state.transcript);
      }
    }
  });

  test.each([
    ['callModel', textReply('x'), true],
    ['callModel', 7, false],
    ['agent', 7, true],
  ])('shows whether a result is one of the activity %s: %j', (activity, value, fits) => {
    expect(fitsActivity(activity, value)).toBe(fits);
  });

  test('fails the run if another result replaces its agent, because a worker has answered', () => {
    const local = { activity: 'loadAgent', input: { local: true } };
    const empty = initialState(unloadedConfig('a'), { open: true });
    expect(after(empty, scheduled(local), completed(local, 7)).work).toEqual([]);
    expect(workOf(after(empty, scheduled(local), failed(local, 'x')), 'agent')).not.toBeNull();
  });

  test('fails the turn if another result replaces that of its model call', () => {
    const state = after(begun(config()), scheduled(model()), completed(model(), 'hello'));
    expect(getOutcome(state)).toMatchObject({
      status: 'failed',
      error: 'callModel: expected a result of this activity, got "hello"; it was completed by hand',
    });
  });
});

describe('a late fact', () => {
  const two = replied(begun(config()), callReply(['look', { n: 1 }], ['look', { n: 2 }]));
  const [first, second] = [toolTask(two, 0), toolTask(two, 1)];
  const half = after(
    two,
    scheduled(first),
    scheduled(second),
    completed(first, { ok: true, text: 'a' }),
  );
  const late = [completed(first, { ok: true, text: 'b' }), failed(first, 'x'), canceled(first)];

  test('about a call that has its result changes nothing while other calls run', () => {
    for (const fact of late) expect(after(half, fact)).toEqual(half);
    for (const activity of ['runFunction', 'followRun']) {
      const task = { ...first, activity };
      const facts = [completed(task, { happened: false }), failed(task, 'x'), canceled(task)];
      for (const fact of facts) expect(after(half, fact)).toEqual(half);
    }
  });

  test('that restarts a call which has its result ends with that activity', () => {
    for (const fact of late.slice(0, 2)) {
      const again = after(half, scheduled(first), fact);
      expect(findWork(again, ID)).toBeUndefined();
      expect(getOpenBatch(again)?.results[0]?.text).toBe('a');
    }
  });

  test('that restarts a call of an earlier step ends with that activity, too', () => {
    const over = after(half, completed(second, { ok: true, text: 'b' }));
    for (const fact of late) {
      expect(after(over, scheduled(first), fact).work).toEqual([]);
      expect(after(over, scheduled(first), fact).transcript).toEqual(over.transcript);
    }
  });
});

describe('a request whose notice was sent', () => {
  const state = afterNextAction(runWithCall('put', { verdict: { then: 'ask', why: 'a rule' } }));
  const afterNotice = (input: unknown): RunState =>
    after(state, completed({ activity: 'notifyRequest', input }, null));

  test('remembers that, so that the notice is sent once', () => {
    expect(workOf(afterNotice({ request: { id: 'r1' } }), ID)?.['request']).toMatchObject({
      notified: true,
    });
    expect(requestOf(afterNotice({ request: { id: 'r1' } })).id).toBe('r1');
  });

  test('does not change if the notice was for another request', () => {
    for (const input of [{ request: { id: 'r2' } }, { request: 'r1' }, null]) {
      expect(afterNotice(input)).toEqual(state);
    }
  });

  test('is not decided by a check without a decision', () => {
    expect(after(state, completed(checkOf(state), { ok: true }))).toEqual(state);
    expect(openRequests(state, 'run')).toHaveLength(1);
  });
});

test('only a call can have a request to accept its changed tool', () => {
  const state = begun(config({ retrieve: { timeoutMs: 1 } }));
  const task = { activity: 'retrieveDocuments', input: {} };
  const changed = after(
    state,
    scheduled(task),
    blocked(task, 'tool_changed', { definition: 'd' }, 5),
  );
  expect(workOf(changed, 'retrieve')).toMatchObject({ block: { reason: 'tool_changed' } });
  expect(openRequests(changed, 'run')).toEqual([]);
});
