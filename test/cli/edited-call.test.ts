import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { CliContext } from '../../src/cli/context.js';
import { palette } from '../../src/cli/format/format.js';
import { reportInterrupted } from '../../src/cli/reports/report-run.js';
import { dialogue, pairLines } from '../../src/cli/run-view/dialogue.js';
import { createStepLines } from '../../src/cli/run-view/step-lines.js';
import { callPairs } from '../../src/core/transcript/transcript.js';
import { createStepEmitter } from '../../src/history/emit-steps.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { HistoryEvent } from '../../src/history/history-event.js';
import { type Projection, createProjector, project } from '../../src/history/projection.js';
import { after, answer, edit, replyCall, replyText, runInMemory } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { useSourceBundle } from '../support/memory.js';

const paint = palette(false);
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  effect: 'once',
  approval: 'always',
  input: z.object({ order: z.number(), euros: z.number() }),
  describe: ({ order, euros }) => `refund ${euros} € to order ${order}`,
  execute: ({ euros }) => `paid ${euros} €`,
});
const clerk = defineAgent({ name: 'clerk', instructions: 'Refund.', tools: [refund] });

let events: readonly HistoryEvent[];
beforeAll(async () => {
  await useSourceBundle();
  const { history } = await runInMemory(clerk, {
    message: 'Refund order 17',
    model: [replyCall('refund', { order: 17, euros: 83 }), replyText('Done.')],
    on: { request: { refund: after('2 hours', edit({ order: 17, euros: 70 }, { by: 'bob' })) } },
  });
  events = (history[0]?.history.events ?? []).map(decodeEvent);
});

test('a call with edited arguments is named as it was executed', () => {
  const view = project(events);
  const fixes = { run: 'x', resume: null, runnable: (text: string) => text };
  const steps = events.flatMap(createStepEmitter('r'));
  expect(createStepLines(paint, fixes).steps(steps, view)[0]).toMatch(
    // The run waited two hours for the decision, which is no part of the step's time.
    /^step 1 · refund 70 € to order 17 \(edited\) · \d+ B · \d+\.\d s$/,
  );
  const lines = dialogue(view.messages, { full: false, paint });
  expect(lines.filter((line) => line.startsWith('#2'))).toEqual([
    expect.stringMatching(/^#2 refund \(call_1_1_0\) · edited: refund 70 € to order 17 · turn 1/),
  ]);
  const decisions = view.decisions.map(({ decision }) => decision);
  const options = { full: false, paint, decisions };
  const pairs = pairLines(callPairs(view.messages), options);
  const timeless = pairs.map((line) => line.replace(/\d\d:\d\d:\d\d$/, 'TIME'));
  expect(timeless.slice(0, 3)).toEqual([
    '#1 · turn 1 · step 1 · TIME',
    '  → refund {"euros":83,"order":17} call_1_1_0 · edit by bob',
    '  #2 result · edited: refund 70 € to order 17 · TIME',
  ]);
  // The same number has the same time in both forms.
  const [, ownTime = 'none'] = /(\d\d:\d\d:\d\d)$/.exec(pairs[0] ?? '') ?? [];
  const own = dialogue(view.messages, options);
  expect(own.find((line) => line.startsWith('#1 '))).toContain(ownTime);
  expect(own).toContain('  → refund {"euros":83,"order":17} call_1_1_0 · edit by bob');
});

test('a call whose result a person has given does not look as if it was executed', async () => {
  const { history } = await runInMemory(clerk, {
    message: 'Refund order 17',
    model: [replyCall('refund', { order: 17, euros: 83 }), replyText('Done.')],
    on: { request: { refund: answer('paid in cash', { by: 'bob' }) } },
  });
  const answered = (history[0]?.history.events ?? []).map(decodeEvent);
  const view = project(answered);
  const fixes = { run: 'x', resume: null, runnable: (text: string) => text };
  const steps = answered.flatMap(createStepEmitter('r'));
  expect(createStepLines(paint, fixes).steps(steps, view)[0]).toMatch(
    /^step 1 · refund 83 € to order 17 \(result given by bob\) · \d+ B · /,
  );
  const decisions = view.decisions.map(({ decision }) => decision);
  const options = { full: false, paint, decisions };
  expect(dialogue(view.messages, options).find((line) => line.startsWith('#2'))).toMatch(
    /^#2 refund \(call_1_1_0\) · given by bob · turn 1/,
  );
  expect(pairLines(callPairs(view.messages), options)[2]).toMatch(
    /^ {2}#2 result · given by bob · \d/,
  );
});

test('an interrupt while the run waits for a decision says so, and how to see it', async () => {
  const view = waiting();
  const notes: string[] = [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that the report uses
  const context = {
    options: { json: false },
    env: {},
    note: (line: string) => notes.push(line),
    taskQueue: () => Promise.resolve('q'),
  } as unknown as CliContext;
  const run = { id: 'g2', runId: 'r', taskQueue: 'q', last: { runId: 'r', view } };
  await reportInterrupted(context, { ...run, wasHosting: false });
  expect(notes.join('\n')).toMatch(
    /^Interrupted: run g2 waits for 1 decision; show it with: .* inbox g2\n/,
  );
  await reportInterrupted(context, { ...run, wasHosting: true });
  expect(notes.at(-1)).toMatch(/waits for 1 decision.*\n.*needs a worker.* attach g2$/s);
});

/** Returns the run as it waits for the decision. */
function waiting(): Projection {
  const projector = createProjector();
  for (const event of events) {
    if (event.type === 'update') break;
    projector.push(event);
  }
  return projector.view();
}
