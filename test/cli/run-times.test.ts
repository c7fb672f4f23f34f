import { expect, test } from 'vitest';
import type { CliContext } from '../../src/cli/context.js';
import { palette } from '../../src/cli/format/format.js';
import { reportEnd } from '../../src/cli/reports/report-run.js';
import { liveLine } from '../../src/cli/run-view/ticker.js';
import type { Projection } from '../../src/history/projection.js';
import { runMs } from '../../src/history/run-time.js';
import { begun, config } from '../support/scripts.js';
import { viewOf } from '../support/view.js';

test('the time of a run is that from its acceptance to its end', async () => {
  const notes: string[] = [];
  const note = (text: string) => notes.push(text);
  const context = { options: {}, color: false, note, out: () => undefined };
  const outcome = {
    status: 'completed',
    reason: 'text',
    answer: null,
    output: null,
    steps: 1,
    toolCalls: 0,
    usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0, costUsd: 0 },
    segments: 1,
  } as never;
  const ended = { type: 'ended', id: 9, at: 7_500, how: 'completed', result: null } as never;
  const state = { ...begun(config()), startedAt: 2_100 };
  const view = viewOf(state, { startedAt: 1_000, ended, outcome });
  await reportEnd(context as unknown as CliContext, { id: 'x', runId: 'f', view });
  expect(notes.join('')).toMatch(/ · 6\.5 s$/);
  // The first event of a later segment is not the start of the run.
  expect(runMs({ ...view, state: { ...state, segments: 2 }, startedAt: 7_000 })).toBe(5_400);
});

test('the live time of a node with items counts from its beginning, without waits for people', () => {
  const run = begun(config());
  const nodes = [{ kind: 'each', name: 'all', save: 'list', exits: [] }];
  const definition = { ...run.config.definition, graph: { start: 'all', nodes } as never };
  const at = { node: 'all', visit: 1, since: 2_000 };
  const graph = { values: {}, at, visited: [] };
  const state = { ...run, config: { ...run.config, definition }, graph };
  const work = { modelCalls: 0, steps: 0, activities: 1, attempts: 1, waitedMs: 3_000 };
  const item = { activity: 'runTool', activityId: '4', summary: '', call: null, input: {} };
  const inFlight: Projection['inFlight'] = new Map([[9, { ...item, at: 10_000 }]]);
  const view = viewOf(state, { inFlight, visits: new Map([['1 all', work]]) });
  const given = { now: 12_000, attempts: new Map(), paint: palette(false), run: 'x' };
  expect(liveLine(view, given)).toContain(' · 7.0 s · ');
});
