import { describe, expect, test } from 'vitest';
import { dialogue } from '../../src/cli/run-view/dialogue.js';
import { liveLine } from '../../src/cli/run-view/ticker.js';
import { cutLine, palette, formatDateTime } from '../../src/cli/format/format.js';
import { type GraphState, initialState, type RunState } from '../../src/core/state/state.js';
import { actionLine, createStepLines } from '../../src/cli/run-view/step-lines.js';
import type { InFlight, Projection } from '../../src/history/projection.js';
import { planProgress } from '../../src/core/run/details.js';
import type { RunEvent } from '../../src/core/run/events.js';
import type { Message, UserMessage } from '../../src/core/transcript/messages.js';
import { reduce } from '../../src/core/run/reduce.js';
import { callReply, config, textReply, TOOLS, toolDefinition } from '../support/scripts.js';
import { follower, viewOf } from '../support/view.js';

const paint = palette(false);
const fixes = { run: 'x', resume: 'resume x', runnable: (text: string) => text };
/** Moves the cursor and reverses the reading direction in terminals that support it. */
const HOSTILE = 'a\u001b[2J\u202eb\nc';
const SHOWN = 'a\\u001b[2J\\u202eb c';

const open: Partial<Projection> = { input: { agent: 'test', open: true } };
const view = (state: RunState, rest: Partial<Projection> = {}): Projection =>
  viewOf(state, { ...open, ...rest });

function after(state: RunState, ...events: readonly RunEvent[]): RunState {
  return events.reduce((next, event) => reduce(next, event), state);
}

function message(text: string, turn: number): RunEvent {
  return { type: 'message-received', message: { id: text, text, turn } };
}

function opened(): RunState {
  const tools = [...TOOLS, toolDefinition('wait', 'read', { kind: 'wait' })];
  return after(initialState(config({ tools }), { open: true }), message('go', 1), {
    type: 'turn-begun',
    at: 0,
  });
}

function replied(text: string): readonly RunEvent[] {
  return [
    { type: 'model-replied', reply: textReply(text), at: 5 },
    { type: 'turn-recorded', at: 5 },
  ];
}

const live = (state: RunState, rest: Partial<Projection> = {}): string =>
  liveLine(view(state, rest), { now: 0, attempts: new Map(), paint, run: 'x' });

test('the undo of a call has a line, and why it failed', () => {
  const lines = createStepLines(paint, fixes);
  const change = { type: 'undo-changed', call: 'c1', tool: 'book' } as const;
  expect(lines.steps([{ ...change, state: 'undone' }], view(opened()))).toEqual([
    'undo of c1 · book · undone',
  ]);
  expect(lines.steps([{ ...change, state: 'failed', message: HOSTILE }], view(opened()))).toEqual([
    `undo of c1 · book · failed: ${SHOWN}`,
  ]);
});

test('a request that is closed, but not by a decision about it, has a line', () => {
  const lines = createStepLines(paint, fixes);
  const closed = { type: 'request-closed', request: 'r1' } as const;
  expect(
    lines.steps(
      [
        { ...closed, as: null },
        { ...closed, as: 'deny' },
      ],
      view(opened()),
    ),
  ).toEqual(['request r1 is closed']);
});

test('an action was skipped if its error says so, and not if its tool has the same words', () => {
  const nodes = [
    { kind: 'plan', name: 'plan', save: 'plan', exits: [] },
    { kind: 'execute', name: 'execute', plan: 'plan', save: 'results', exits: [] },
  ];
  const needs = 'not executed: it needs a1, which has failed';
  const errors: readonly (readonly [type: string, message: string, line: string])[] = [
    [
      'tool_error',
      'not executed: the day is full',
      'failed · tool_error: not executed: the day is full',
    ],
    ['tool_error', needs, `failed · tool_error: ${needs}`],
    ['invalid_arguments', needs, 'skipped · it needs a1, which has failed'],
    ['invalid_arguments', 'not executed: x', 'failed · invalid_arguments: not executed: x'],
    ['not_executed', 'not executed: it needs a1, …', 'skipped · it needs a1, …'],
    [
      'denied',
      'not executed: a person denied it',
      'failed · denied: not executed: a person denied it',
    ],
  ];
  const actions = errors.map((_, at) => {
    return { id: `a${at + 1}`, tool: 'add', arguments: {}, ...(at > 0 && { after: ['a1'] }) };
  });
  const results = Object.fromEntries(
    errors.map(([type, text], at) => [`a${at + 1}`, { ok: false, error: { type, message: text } }]),
  );
  const run = opened();
  const definition = { ...run.config.definition, graph: { start: 'plan', nodes } as never };
  const progress = planProgress({
    ...run,
    config: { ...run.config, definition },
    graph: { values: { plan: { actions, done: [] }, results }, at: null, visited: [] },
  });
  const lines = progress?.actions.map((action) => actionLine(action, paint));
  expect(lines).toEqual(errors.map(([, , line], at) => `action a${at + 1} · add · ${line}`));
});

describe('the lines of an open run', () => {
  test('show each later turn with its message, and the messages that join it', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const first = after(opened(), ...replied('one'));
    expect(stepLines(view(first))).toEqual([]);
    const second = after(first, message(HOSTILE, 2), { type: 'turn-begun', at: 10 });
    expect(stepLines(view(second))).toEqual([`turn 2 · ${SHOWN}`]);
    expect(live(second)).toMatch(/^turn 2, step 1 of 50 · /);
    const steered = after(second, message(`${HOSTILE}!`, 2));
    expect(live(steered)).toContain(' · 1 message queued · ');
    const joined = after(steered, { type: 'messages-joined', at: 12 });
    expect(stepLines(view(joined))).toEqual([`joins turn 2 · ${SHOWN}!`]);
    expect(stepLines(view(joined))).toEqual([]);
  });

  test('name once each MCP server that the run works without', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const run = opened();
    const left = [
      { server: 'docs', message: `cannot be started: ${HOSTILE}` },
      { server: 'crm', message: 'did not answer within 20 seconds' },
    ];
    const definition = { ...run.config.definition, mcp: { servers: [], left } };
    const without = { ...run, config: { ...run.config, definition } };
    expect(stepLines(view(without))).toEqual([
      `without MCP server docs: cannot be started: ${SHOWN}`,
      'without MCP server crm: did not answer within 20 seconds',
    ]);
    expect(stepLines(view(after(without, ...replied('one'))))).toEqual([]);
  });

  test('show each node of a graph with its exit, its items, its error, and its time', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const run = opened();
    const nodes = [{ kind: 'each', name: 'each', save: 'list', exits: [] }];
    const definition = { ...run.config.definition, graph: { start: 'each', nodes } as never };
    const graphView = (graph: GraphState): Projection =>
      view({ ...run, config: { ...run.config, definition }, graph }, { lastEvent: 2 });
    const visits = (node: string, exit: string, ms: number) => ({
      node,
      inTurn: 1,
      total: 1,
      ms,
      taken: [{ exit, count: 1 }],
    });
    const each = { node: 'each', visit: 1, since: 0 };
    expect(stepLines(graphView({ values: {}, at: each, visited: [] }))).toEqual([]);
    const saved = {
      list: [
        { ok: true, value: 1 },
        { ok: false, error: { type: 'declined', message: 'odd' } },
      ],
    };
    const pay = { node: 'pay', visit: 1, since: 0 };
    const first = [visits('each', 'done', 1_200), visits('sort', 'else', 0)];
    expect(stepLines(graphView({ values: saved, at: pay, visited: first }))).toEqual([
      'node each · done · 2 of 2 items, 1 failed · item 2: declined: odd · 1.2 s',
      'node sort · exit else',
    ]);
    const error = { node: 'pay', type: 'declined', message: 'no money' };
    const failed = [...first, visits('pay', 'failed', 300)];
    const values = { ...saved, error };
    expect(stepLines(graphView({ values, at: null, visited: failed }))).toEqual([
      'node pay · failed · declined: no money · 0.3 s',
    ]);
    expect(stepLines(graphView({ values, at: null, visited: failed }))).toEqual([]);
    // The items of another visit are the same.
    const again = [
      { ...visits('each', 'done', 2_200), total: 2, taken: [{ exit: 'done', count: 2 }] },
    ];
    const other = follower(createStepLines(paint, fixes));
    other(graphView({ values: saved, at: { ...each, visit: 2 }, visited: first }));
    expect(other(graphView({ values: saved, at: null, visited: again }))).toEqual([
      'node each · done · 2 of 2 items, 1 failed · item 2: declined: odd · 1.0 s',
    ]);
    // A reader who comes late knows only the time of both visits.
    const late = follower(createStepLines(paint, fixes));
    const twice = [
      { ...visits('pay', 'done', 600), total: 2, taken: [{ exit: 'done', count: 2 }] },
    ];
    expect(late(graphView({ values: {}, at: null, visited: twice }))).toEqual([
      'node pay · done',
      'node pay · done',
    ]);
  });

  test('name what it waits for: a time, a resume, a message', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const reply = callReply(['wait', { seconds: 3_600 }]);
    const waiting = after(opened(), { type: 'model-replied', reply, at: 1_000 });
    const until = formatDateTime(3_601_000);
    expect(stepLines(view(waiting))).toEqual([
      `waiting until ${until}, or until a message arrives`,
    ]);
    expect(stepLines(view(waiting))).toEqual([]);
    expect(live(waiting)).toContain(`waiting_time until ${until}, in 60 min`);

    const paused = after(opened(), { type: 'pause-changed', paused: true });
    const lines = follower(createStepLines(paint, fixes));
    expect(lines(view(paused))).toEqual(['paused: nothing new starts', 'Resume it with: resume x']);
    expect(live(paused)).toContain(' · paused · ');
    expect(lines(view(paused))).toEqual([]);
    expect(lines(view(opened()))).toEqual(['resumed']);
    const call: InFlight = {
      activity: 'callModel',
      activityId: '4',
      summary: '',
      call: null,
      input: {},
      at: 0,
    };
    const busy = { inFlight: new Map([[9, call]]) };
    const staying = createStepLines(paint, { ...fixes, resume: null });
    expect(staying.now(view(paused, busy))).toEqual([
      'paused: calls in flight finish, nothing new starts',
    ]);
    expect(live(paused, busy)).toContain('m · 0.0 s · pausing after this');
    const compacting = { inFlight: new Map([[9, { ...call, input: { compact: 3 } }]]) };
    expect(live(opened(), compacting)).toContain(' · summarizing, m · ');

    const over = after(opened(), ...replied('one'));
    expect(live(over)).toMatch(/^step 1 of 50 · waiting_message · /);
    // The turn has ended, and its outcome is not recorded yet.
    const ending: RunEvent = { type: 'model-replied', reply: textReply('one'), at: 5 };
    expect(live(after(opened(), ending))).toMatch(/^step 1 of 50 · /);
  });

  test('show a block in each segment, although each counts its events from 1', () => {
    const stepLines = follower(createStepLines(paint, { ...fixes, resume: null }));
    const blocked = (since: number) => ({
      blocked: new Map([['model', { reason: 'quota' as const, message: 'no money', since }]]),
    });
    const first = opened();
    expect(stepLines(view(first, blocked(40)))).toEqual(['blocked (quota): no money']);
    const second = after(first, { type: 'segment-begun' });
    expect(stepLines(view(second))).toEqual([]);
    expect(stepLines(view(second, blocked(7)))).toEqual(['blocked (quota): no money']);
    expect(stepLines(view(second, blocked(7)))).toEqual([]);
  });

  test('show all of why a run is blocked, since it ends with what to do', () => {
    const why = `${'not here '.repeat(30)}; start a worker`;
    const block = { reason: 'agent_missing' as const, message: why, since: 4 };
    const lines = createStepLines(paint, { ...fixes, resume: null }).now(
      view(opened(), { blocked: new Map([['load', block]]) }),
    );
    expect(lines).toEqual([`blocked (agent_missing): ${why}`]);
  });
});

describe('a summary for the model', () => {
  const summary: UserMessage = {
    n: 4,
    turn: 2,
    step: 0,
    at: 0,
    role: 'user',
    text: `forged\n#9 user ${HOSTILE}`,
    origin: 'perdure',
    compacts: { from: 0, to: 3 },
  };

  test('is shown in one line, without its text', () => {
    const lines = createStepLines(paint, fixes);
    expect(
      lines.steps([{ type: 'transcript-compacted', message: summary }], view(opened())),
    ).toEqual(['a summary replaces messages 0 to 3 from here on']);
  });

  test('is marked in a transcript, and so is a segment', () => {
    const { origin: _, compacts: __, ...plain } = summary;
    const pinned: Message = { ...plain, n: 5, text: 'more', pinned: true };
    const lines = dialogue([summary, pinned], {
      full: false,
      paint,
      segment: { number: 3, from: 5 },
    });
    expect(lines.map((line) => line.replace(/ · \d\d:\d\d:\d\d$/, ''))).toEqual([
      '#4 perdure · summary, replaces #0 to #3 for the model · turn 2',
      '  forged',
      '  #9 user a\\u001b[2J\\u202eb',
      '  c',
      '',
      '--- segment 3 begins ---',
      '',
      '#5 user · pinned · turn 2',
      '  more',
      '',
    ]);
  });
});

test.each([
  ['step 1 · short', 14, 'step 1 · short'],
  ['step 1 · longer', 10, 'step 1 ·…'],
  [
    '\u001b[36mstep 1\u001b[39m · \u001b[33mwaits\u001b[39m',
    11,
    '\u001b[36mstep 1\u001b[39m · \u001b[33mw…\u001b[39m',
  ],
  ['東京東京', 5, '東京…'],
])('the live line %j is cut to %i columns', (line, width, shown) => {
  expect(cutLine(line, width)).toBe(shown);
});
