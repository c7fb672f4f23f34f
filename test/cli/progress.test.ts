import { describe, expect, test } from 'vitest';
import { nextCommand } from '../../src/cli/reports/next-command.js';
import type { CliContext } from '../../src/cli/context.js';
import { reportInterrupted, runHeader } from '../../src/cli/reports/report-run.js';
import { uiLink } from '../../src/cli/reports/run-pages.js';
import { liveLine } from '../../src/cli/run-view/ticker.js';
import {
  isColorWanted,
  palette,
  formatCount,
  formatDuration,
  formatUsage,
  lastLines,
} from '../../src/cli/format/format.js';
import { dialogue } from '../../src/cli/run-view/dialogue.js';
import { createStepLines } from '../../src/cli/run-view/step-lines.js';
import { formatInterval, printable } from '../../src/core/text/text.js';
import type { Projection } from '../../src/history/projection.js';
import { errorText, failureOf, type CallResult } from '../../src/core/transcript/call-result.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import type { ServerHandle } from '../../src/server/server-settings.js';
import { callReply, begun, config, textReply, withResults } from '../support/scripts.js';
import { appendMessage } from '../../src/core/state/change.js';
import { planValue } from '../../src/core/plan/plan.js';
import { reportText } from '../../src/core/plan/results.js';
import { ID, runWithCall } from '../support/pending-call.js';
import { follower, viewOf } from '../support/view.js';
import { getOpenBatch } from '../../src/core/state/turn.js';

const runnable = (text: string): string => text;

const paint = palette(false);
const fixes = { run: 'x', resume: null, runnable };
const ESCAPE = '\u001b[31m';

function ok(id: string, text: string): CallResult {
  return { id, ok: true, text, executed: true };
}

/** After one step with two calls and one with a call that fails. */
function twoSteps(): { first: RunState; second: RunState } {
  const start = begun(config());
  const asked = reduce(start, {
    type: 'model-replied',
    reply: callReply(['look', { path: 'a.ts' }], ['look', { path: `b${ESCAPE}.ts` }]),
    at: 1_000,
  });
  const first = withResults(
    asked,
    [ok('call_1_1_0', 'x'.repeat(3_000)), ok('call_1_1_1', 'y'.repeat(100))],
    1_400,
  );
  const again = reduce(first, {
    type: 'model-replied',
    reply: callReply(['put', { n: 1 }]),
    at: 2_000,
  });
  const failure = errorText({ type: 'tool_error', message: `no ${ESCAPE} space` });
  const second = withResults(
    again,
    [{ id: 'call_1_2_0', ok: false, text: failure, executed: true }],
    2_900,
  );
  return { first, second };
}

const given = { now: 12_000, attempts: new Map(), paint, run: 'x' };

describe('the lines of recorded steps', () => {
  test('contain one line per step, shown once, without control characters', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const { first, second } = twoSteps();
    expect(stepLines(viewOf(null))).toEqual([]);
    expect(stepLines(viewOf(first))).toEqual([
      'step 1 · 2 calls: look a.ts, look b\\u001b[31m.ts · 3.1 kB · 1.4 s',
    ]);
    expect(stepLines(viewOf(first))).toEqual([]);
    expect(stepLines(viewOf(second))).toEqual([
      'step 2 · put 1 · tool_error: no \\u001b[31m space · 1.5 s',
    ]);
  });

  test('show a success whose text reads like an error as a success, and any failure as one', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const start = begun(config());
    const asked = reduce(start, {
      type: 'model-replied',
      reply: callReply(['look', { n: 1 }], ['look', { n: 2 }], ['look', { n: 3 }]),
      at: 5,
    });
    const text = errorText({ type: 'denied', message: 'a line of a log' });
    const plain = { id: 'call_1_1_2', ok: false, text: 'no such host', executed: true };
    const results = [ok('call_1_1_0', text), ok('call_1_1_1', 'fine'), plain];
    const done = withResults(asked, results, 10);
    expect(stepLines(viewOf(done))).toEqual([
      'step 1 · 3 calls: look 1, look 2, look 3 · 71 B · 1 failed, the first: tool_error: no such host · 0.0 s',
    ]);
    expect(
      done.transcript.messages.slice(-3).map((message) => 'ok' in message && message.ok),
    ).toEqual([true, false, false]);
    const read = dialogue(done.transcript.messages, { full: false, paint });
    expect(read.filter((line) => line.includes('· failed'))).toHaveLength(1);
  });

  test('read the failures of messages that an older version recorded', () => {
    const text = errorText({ type: 'timeout', message: 'a "quoted" line\nand more' });
    expect(failureOf({ text })).toEqual({ type: 'timeout', message: 'a "quoted" line\nand more' });
    expect(failureOf({ text: 'fine' })).toBeNull();
    expect(failureOf({ ok: false, text: `[a person changed the arguments]\n${text}` })).toEqual({
      type: 'timeout',
      message: 'a "quoted" line\nand more',
    });
    // The middle of a long text is not in the history.
    expect(failureOf({ text: text.slice(0, 45) })?.type).toBe('timeout');
  });

  test('wait for all calls of a step', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const start = begun(config());
    const asked = reduce(start, { type: 'model-replied', reply: callReply(['look']), at: 5 });
    expect(stepLines(viewOf(asked))).toEqual([]);
    const done = withResults(asked, [ok('call_1_1_0', 'abc')], 10);
    expect(stepLines(viewOf(done))).toEqual(['step 1 · look · 3 B · 0.0 s']);
  });

  test('show each block once, and a later one of the same kind again', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const state = begun(config());
    const blocked = (since: number) =>
      new Map([['model', { reason: 'credentials' as const, message: 'bad key', since }]]);
    expect(stepLines(viewOf(state, { blocked: blocked(7) }))).toEqual([
      'blocked (credentials): bad key',
    ]);
    expect(stepLines(viewOf(state, { blocked: blocked(7) }))).toEqual([]);
    expect(stepLines(viewOf(state, { blocked: blocked(12) }))).toHaveLength(1);
    const staying = follower(createStepLines(paint, { ...fixes, resume: 'resume x' }));
    expect(staying(viewOf(state, { blocked: blocked(7) }))[1]).toMatch(
      /retry at once with: resume x$/,
    );
  });

  test('show only the last lines when a run is joined late', () => {
    const lines = ['1', '2', '3', '4', '5', '6', '7'];
    expect(lastLines(lines, paint)).toEqual(['… 2 earlier lines', '3', '4', '5', '6', '7']);
    expect(lastLines(['1'], paint)).toEqual(['1']);
  });
});

describe('the live line', () => {
  const model = {
    activity: 'callModel',
    activityId: '4',
    summary: '',
    call: null,
    input: {},
    at: 10_000,
  };

  test('names step, cap, model, time, and usage', () => {
    const { second } = twoSteps();
    const line = liveLine(viewOf(second, { inFlight: new Map([[9, model]]) }), given);
    expect(line).toBe('step 3 of 50 · m · 2.0 s · 20 in, 10 out');
  });

  test('names the attempt and why the previous one failed', () => {
    const { second } = twoSteps();
    const attempts = new Map([['4', { attempt: 3, lastFailure: `429 ${ESCAPE}slow` }]]);
    const line = liveLine(viewOf(second, { inFlight: new Map([[9, model]]) }), {
      ...given,
      attempts,
    });
    expect(line).toContain(' · attempt 3, after: 429 \\u001b[31mslow · ');
  });

  test('names the request that the run waits for while its notice fails', async () => {
    const state = { ...runWithCall('put'), firstRunId: 'f' };
    const request = { id: 'r1', raisedAt: 1_000, kind: 'approval', why: 'a rule' } as const;
    const work = { name: ID, phase: 'waiting', key: 'key-1', request };
    const notice = { ...model, activity: 'notifyRequest' };
    const view = viewOf({ ...state, work: [work as never] }, { inFlight: new Map([[9, notice]]) });
    const attempts = new Map([['4', { attempt: 3, lastFailure: 'no mail' }]]);
    const line = liveLine(view, { ...given, attempts });
    expect(line).toContain('waiting_decision (approval): put');
    expect(line).toContain('notice: attempt 3, after: no mail');

    const notes: string[] = [];
    const context = {
      options: {},
      env: {},
      note: (text: string) => notes.push(text),
      taskQueue: async () => 'q',
    } as unknown as CliContext;
    const last = { runId: 'f', view };
    const left = { id: 'x', runId: 'f', taskQueue: 'q', last, wasHosting: true };
    expect(await reportInterrupted(context, left)).toBe(130);
    expect(notes.join('\n')).toMatch(/run x waits for 1 decision; show it with: .* inbox x\n/);
    notes.length = 0;
    const paused = {
      runId: 'f',
      view: { ...view, state: view.state && { ...view.state, paused: true } },
    };
    await reportInterrupted(context, { ...left, last: paused });
    expect(notes.join('\n')).toMatch(
      /It is paused\. After the decision, resume it with: .* resume x$/,
    );
  });

  test.each([
    [{ paused: true }, true, /is still open\. It is paused\. Resume it with: .* resume x$/],
    [{}, true, /is still open\. After a fix, run: .* attach x$/],
    [{}, false, /is still open\. After a fix, run: .* resume x$/],
  ])('names what releases a run after an interrupt: %j', async (rest, wasHosting, text) => {
    const notes: string[] = [];
    const context = {
      options: {},
      env: {},
      note: (line: string) => notes.push(line),
      taskQueue: async () => 'q',
    } as unknown as CliContext;
    const blocked = new Map('paused' in rest ? [] : [[1, { reason: 'quota' } as never]]);
    const view = viewOf({ ...begun(config()), ...rest }, { blocked: blocked as never });
    const last = { runId: 'f', view };
    await reportInterrupted(context, { id: 'x', runId: 'f', taskQueue: 'q', last, wasHosting });
    expect(notes.join('\n')).toMatch(text);
  });

  test('names the calls of the current step', () => {
    const start = begun(config());
    const asked = reduce(start, {
      type: 'model-replied',
      reply: callReply(['look', { path: 'a' }], ['look', { path: 'b' }]),
      at: 0,
    });
    const calls = getOpenBatch(asked)?.calls ?? [];
    const flying = calls.map(
      (call, index) => [index, { ...model, activity: 'runTool', call }] as const,
    );
    const line = liveLine(viewOf(asked, { inFlight: new Map(flying) }), given);
    expect(line).toBe('step 1 of 50 · 2 calls: look a, look b · 2.0 s · 10 in, 5 out');
  });

  test('reports a run that has not started', () => {
    expect(liveLine(viewOf(null), { ...given, now: 1_500 })).toBe('starting · 1.5 s');
  });
});

describe('the header', () => {
  const server: ServerHandle = {
    address: '127.0.0.1:7233',
    namespace: 'a b',
    uiUrl: 'http://127.0.0.1:8233',
    how: 'adopted',
    version: null,
    pid: null,
    home: '/h',
  };

  async function shown(...views: readonly (Projection | null)[]): Promise<readonly string[]> {
    const lines: string[] = [];
    const context = { server: async () => server } as unknown as CliContext;
    const header = await runHeader(context, { id: 'x/1', joined: {} }, paint);
    const screen = {
      line: (text: string) => void lines.push(text),
      live: () => {},
      close: () => {},
    };
    for (const each of views) await header.show(each, screen);
    return lines;
  }

  test('links to the run, and is shown once, with the model when that is known', async () => {
    const link = 'http://127.0.0.1:8233/namespaces/a%20b/workflows/x%2F1';
    expect(uiLink(server, 'x/1')).toBe(link);
    const state = begun(config());
    const lines = [`run x/1 · ${link}`, 'model m'];
    expect(await shown(viewOf(null), viewOf(state), viewOf(state))).toEqual(lines);
    expect(await shown(viewOf(state))).toEqual(lines);
  });

  test('never shows an empty model while the definition is being loaded', async () => {
    const loading = begun(config({ model: '' }));
    const lines = await shown(null, viewOf(loading), viewOf(begun(config())));
    expect(lines).toEqual([expect.stringMatching(/^run x\/1 · http/), 'model m']);
  });

  test('names no model for a run that calls none', async () => {
    expect(await shown(viewOf(begun(config({ model: 'none' }))))).toHaveLength(1);
  });

  test('does not wait long for the model, and never presents the demo model as an LLM', async () => {
    const state = begun(config({ model: 'demo' }));
    const lines = await shown(null, viewOf(null), viewOf(state), viewOf(state));
    expect(lines).toEqual([
      expect.stringMatching(/^run x\/1 · http/),
      'demo model (code, not an LLM)',
    ]);
  });
});

describe('formats', () => {
  test('are short for counts, times, and costs', () => {
    expect([formatCount(1, 'step'), formatCount(0, 'step')]).toEqual(['1 step', '0 steps']);
    const times: readonly (readonly [number, string, string?, string?])[] = [
      [-5, '0.0 s', '0 s'],
      [20, '0.0 s', '20 ms', '0 s'],
      [420, '0.4 s', '420 ms', '0 s'],
      [2_000, '2.0 s', '2 s'],
      [9_949, '9.9 s', '9.949 s', '10 s'],
      [12_000, '12 s'],
      [60_000, '1 min'],
      [90_000, '90 s'],
      [125_000, '2 min 5 s', '2 min 5 s', '2 min'],
      [3_600_000, '1 hour'],
      [5_400_000, '90 min'],
      [7_200_000, '2 hours'],
      [9_000_000, '2 h 30 min', '2 h 30 min', '3 hours'],
      [129_600_000, '36 hours'],
      [86_400_000, '1 day'],
      [190_000_000, '2 d 4 h', '2 d 4 h', '2 days'],
      [2_592_000_000, '30 days'],
    ];
    for (const [ms, measured, exact = measured, rounded = exact] of times) {
      const shown = (['measured', 'exact', 'rounded'] as const).map((as) =>
        formatDuration(ms, { as }),
      );
      expect({ ms, shown }).toEqual({ ms, shown: [measured, exact, rounded] });
    }
    expect([3_600_000, 7_200_000, 90_000, 86_400_000, 1_000].map(formatInterval)).toEqual([
      'every hour',
      'every 2 hours',
      'every 90 s',
      'every day',
      'every 1 s',
    ]);
    const usage = { inputTokens: 1_234, outputTokens: 80, cachedTokens: 0, costUsd: 0.00214 };
    expect(formatUsage(usage)).toBe('1.2k in, 80 out · $0.0021');
    expect(formatUsage({ ...usage, costUsd: null })).toBe('1.2k in, 80 out');
    expect(formatUsage({ ...usage, costUsd: 0, estimated: true })).toBe('about 1.2k in, 80 out');
    expect(formatUsage({ ...usage, inputTokens: 2_500_000, costUsd: 12.345 })).toBe(
      '2.5M in, 80 out · $12.35',
    );
  });

  test('let NO_COLOR take precedence over FORCE_COLOR', () => {
    expect(isColorWanted({ FORCE_COLOR: '1' })).toBe(true);
    expect(isColorWanted({ FORCE_COLOR: '0' })).toBe(false);
    expect(isColorWanted({ FORCE_COLOR: '1', NO_COLOR: '1' })).toBe(false);
  });

  test('include the server and queue in a command to copy', () => {
    const options = { address: 'host:7233', taskQueue: "it's mine", json: true };
    expect(nextCommand({ options, env: {} }, 'attach x')).toMatch(
      / attach x --address host:7233 --task-queue 'it'\\''s mine'$/,
    );
  });

  test('escape control characters, except line breaks', () => {
    expect(printable(`a\n\tb${ESCAPE}\u202ec\r`)).toBe('a\n\tb\\u001b[31m\\u202ec\\u000d');
  });

  test('show the closing call at a limit', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const start = begun(config({}, { steps: 1 }));
    const asked = reduce(start, { type: 'model-replied', reply: callReply(['look']), at: 0 });
    const done = withResults(asked, [ok('call_1_1_0', 'a')], 0);
    const closing = reduce(done, { type: 'closing-begun', reason: 'steps', at: 0 });
    expect(stepLines(viewOf(closing))).toEqual([
      'step 1 · look · 1 B · 0.0 s',
      'limit reached: one last model call for an answer',
    ]);
    expect(liveLine(viewOf(closing), { now: 0, attempts: new Map(), paint, run: 'x' })).toMatch(
      /^closing · /,
    );
    const end = reduce(closing, { type: 'model-replied', reply: textReply('best'), at: 0 });
    expect(stepLines(viewOf(end))).toEqual([]);
  });

  test('does not take the report on a plan, or the note of a person, for a limit', () => {
    const stepLines = follower(createStepLines(paint, fixes));
    const say = (state: RunState, text: string): RunState =>
      appendMessage(state, 0, { role: 'user', text, origin: 'perdure' });
    const plan = planValue({
      actions: [{ id: 'a1', tool: 'add', arguments: {} }],
      done: [],
      asks: false,
    });
    const results = { a1: { ok: true, value: 'added' } };
    const report = reportText({ values: { plan, results }, plan: 'plan', results: 'results' });
    const reported = say(begun(config()), report ?? '');
    expect(stepLines(viewOf(reported))).toEqual([]);
    const noted = say(reported, '[a person answered "yes" and noted: fine]');
    expect(stepLines(viewOf(noted))).toEqual(['[a person answered "yes" and noted: fine]']);
  });
});
