import { expect, test } from 'vitest';
import { sha256Hex } from '../../src/core/text/json.js';
import { type ExecutedCall, followExecutions } from '../../src/history/audit-acts.js';
import type { EventBody, HistoryEvent } from '../../src/history/history-event.js';

const args = '{"order":17}';
const call = { id: 'call_1_1_0', name: 'refund', arguments: args, digest: sha256Hex(args) };

/** Schedules an activity for a call of a tool; its event has the id 1. */
const given = (effect: string, fields: object = {}): EventBody => ({
  type: 'scheduled',
  activity: 'runTool',
  activityId: '1',
  input: { call, effect, ...fields },
  summary: '',
});
const attempted = (attempt: number): EventBody => ({ type: 'attempted', scheduled: 1, attempt });
const completed = (result: object): EventBody => ({ type: 'completed', scheduled: 1, result });
const failed = (...details: object[]): EventBody => ({
  type: 'failed',
  scheduled: 1,
  failure: { message: 'x', type: '', timedOut: false, details },
});
const blocked = (reason: string): EventBody => failed({ type: 'blocked', reason, message: 'x' });
const cancelled: EventBody = { type: 'cancelled', scheduled: 1, details: [] };
const ended = (how: 'terminated' | 'continued' = 'terminated'): EventBody => ({
  type: 'ended',
  how,
  result: null,
});
const started: EventBody = {
  type: 'started',
  workflowType: 'agent',
  input: null,
  carried: null,
  previousRunId: 'before',
  firstRunId: 'first',
  root: 'x',
  start: { cronSchedule: '', hasRetryPolicy: false, hasParent: false, isContinued: true },
};

/** Returns what the log says of the executions, after each of several histories. */
function shown(...segments: readonly (readonly EventBody[])[]): readonly ExecutedCall['ok'][] {
  const next = followExecutions();
  return segments
    .flatMap((bodies) => bodies.map((body, at): HistoryEvent => ({ id: at + 1, at, ...body })))
    .flatMap((event) => next(event).map(({ ok }) => ok));
}

const error = (type: string): object => ({
  ok: false,
  text: JSON.stringify({ error: { type, message: 'x' } }),
});

const undone = (effect: string): EventBody => ({
  type: 'scheduled',
  activity: 'runFunction',
  activityId: '1',
  input: { function: 'undo', call, effect },
  summary: '',
});
const verified: EventBody = {
  type: 'scheduled',
  activity: 'runFunction',
  activityId: '1',
  input: { function: 'verify', call, effect: 'once' },
  summary: '',
};

test.each<[string, readonly EventBody[], readonly ExecutedCall['ok'][]]>([
  ['was undone', [undone('once'), completed({ happened: true, result: {} })], [true]],
  ['was undone, perhaps', [undone('once'), completed({ happened: 'unknown' })], [null]],
  [
    'asks a person before it is undone',
    [undone('keyed'), completed({ happened: 'undecided' })],
    [],
  ],
  ['was undone by a lost worker', [undone('keyed'), ended()], [null]],
  ['was undone elsewhere, perhaps', [undone('keyed'), blocked('tool_missing'), ended()], []],
  ['was verified', [verified, completed({ happened: true, result: {} })], []],
  ['succeeded', [given('once'), completed({ ok: true, text: 'paid' })], [true]],
  ['threw', [given('once'), completed(error('tool_error'))], [false]],
  ['is unknown', [given('once'), completed({ ok: 'unknown', message: 'x' })], [null]],
  ['lost its worker', [given('once'), failed()], [null]],
  ['was canceled', [given('keyed'), cancelled], [null]],
  ['only reads', [given('read'), completed({ ok: true, text: 'seen' })], []],
  ['was only looked for', [given('once', { find: true }), completed({ ok: 'not_started' })], []],
  [
    'was only judged',
    [given('once', { find: true, judge: true }), completed({ ok: 'not_started' })],
    [],
  ],
  ['was only judged, by a lost worker', [given('once', { judge: true }), failed()], []],
  ['was not begun', [given('once'), completed({ ok: 'not_started', message: 'x' })], []],
  ['asks a person first', [given('once'), completed({ ok: 'undecided', verdict: {} })], []],
  ['asks by its server', [given('once'), completed({ ok: 'input_required', asks: [] })], []],
  ['was denied by its worker', [given('once'), completed(error('denied'))], []],
  ['has arguments that do not fit', [given('once'), completed(error('invalid_arguments'))], []],
  ['is blocked without its tool', [given('once'), blocked('tool_missing'), ended()], []],
  ['is blocked by a changed tool', [given('keyed'), blocked('tool_changed'), ended()], []],
  ['is blocked by the storage', [given('once'), blocked('storage'), ended()], []],
  ['may have been, before the storage', [given('keyed'), blocked('storage'), ended()], [null]],
  [
    'may have been, by an attempt before',
    [given('keyed'), attempted(2), blocked('tool_missing'), ended()],
    [null],
  ],
  [
    'may have been, before it was denied',
    [given('keyed'), attempted(2), completed(error('denied')), ended()],
    [null],
  ],
  ['was under way at the end', [given('once'), ended()], [null]],
  ['is under way', [given('once'), attempted(1)], []],
])('a call that %s', (_what, events, log) => {
  expect(shown(events)).toEqual(log);
});

test('a call that is tried again in the next segment is in the log once', () => {
  const first = [given('keyed'), blocked('storage'), ended('continued')];
  const paid: EventBody = { type: 'completed', scheduled: 2, result: { ok: true, text: 'paid' } };
  expect(shown(first, [started, given('keyed'), paid, ended()])).toEqual([true]);
  expect(shown(first, [started, ended()])).toEqual([null]);
});
