import { expect, test } from 'vitest';
import { palette } from '../../src/cli/format/format.js';
import { createAttemptLines, liveLine } from '../../src/cli/run-view/ticker.js';
import { reduce } from '../../src/core/run/reduce.js';
import { getOpenBatch } from '../../src/core/state/turn.js';
import { currentActivity } from '../../src/history/pending-work.js';
import { begun, callReply, config } from '../support/scripts.js';
import { viewOf } from '../support/view.js';

test('names calls that are tried again for the same reason in one line', () => {
  const asked = reduce(begun(config()), {
    type: 'model-replied',
    reply: callReply(['look', { path: 'a' }], ['look', { path: 'b' }], ['look', { path: 'c' }]),
    at: 0,
  });
  const calls = getOpenBatch(asked)?.calls ?? [];
  const model = { summary: '', input: {}, at: 10_000 };
  const given = { now: 12_000, paint: palette(false), run: 'x' };
  const flying = calls.map(
    (call, at) => [at, { ...model, activity: 'runTool', activityId: String(at), call }] as const,
  );
  const view = viewOf(asked, { inFlight: new Map(flying) });
  const lost = { attempt: 2, lastFailure: 'activity Heartbeat timeout' };
  const attempts = new Map(['0', '1', '2'].map((id) => [id, lost] as const));
  expect(liveLine(view, { ...given, attempts })).toContain(
    ' · 3 calls: attempt 2, after: activity Heartbeat timeout · ',
  );
  const lines: string[] = [];
  const show = createAttemptLines({ line: (text) => lines.push(text) });
  show(attempts, view);
  show(attempts, view);
  show(new Map([['1', { ...lost, attempt: 3 }]]), view);
  expect(lines).toEqual([
    '… look a, look b, look c: attempt 2, after: activity Heartbeat timeout',
    '… look b: attempt 3, after: activity Heartbeat timeout',
  ]);
});

test('says why in one sentence, without the name of the node', () => {
  const lines: string[] = [];
  const show = createAttemptLines({ line: (text) => lines.push(text) });
  // A worker of an earlier version names the node by the name of its call.
  for (const [at, name] of ['node sum', 'node:sum'].entries()) {
    const lastFailure = `${name}: no v1.2 of e.g. ledger.ts. Ask Ann.`;
    show(new Map([['1', { attempt: at + 3, lastFailure }]]), null);
  }
  expect(lines).toEqual(
    [3, 4].map((attempt) => `… attempt ${attempt}, after: no v1.2 of e.g. ledger.ts`),
  );
});

test('names the work of a node by the node and its item, not by its data', () => {
  const each = { kind: 'each', name: 'measure', body: { kind: 'run' } };
  const graph = { start: 'measure', nodes: [each] };
  const state = begun(config());
  const definition = { ...state.config.definition, graph: graph as never };
  const view = viewOf(
    { ...state, config: { ...state.config, definition } },
    {
      inFlight: new Map([
        [
          1,
          {
            activity: 'runTool',
            activityId: '1',
            summary: 'node:measure tools.  (The',
            input: {},
            at: 0,
            call: {
              id: 'node_measure_1_4',
              name: 'node:measure',
              arguments: JSON.stringify({ item: 'tools.\n\n(The' }),
              digest: '',
            },
          },
        ],
      ]),
    },
  );
  const lines: string[] = [];
  const lastFailure = 'node:measure: too long: tools.\n\n(The';
  createAttemptLines({ line: (text) => lines.push(text) })(
    new Map([['1', { attempt: 3, lastFailure }]]),
    view,
  );
  expect(lines).toEqual(['… node measure, item 5: attempt 3, after: too long: tools']);
  const work = { activities: new Map(), workflowDueAt: null, workflowFailures: 0 };
  expect(currentActivity({ view, work }, 2_000)).toBe('node measure, item 5 (2 s)');
});
