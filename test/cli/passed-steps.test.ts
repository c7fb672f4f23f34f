import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { palette } from '../../src/cli/format/format.js';
import { nodeLine, createStepLines } from '../../src/cli/run-view/step-lines.js';
import { cases } from '../../src/graphs/cases.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { createStepEmitter } from '../../src/history/emit-steps.js';
import type { HistoryEvent } from '../../src/history/history-event.js';
import { createProjector } from '../../src/history/projection.js';
import { runInMemory } from '../../src/testing.js';
import { useSourceBundle } from '../support/memory.js';

const paint = palette(false);
let failures = 0;

/** Goes through its nodes twice; an item of the first pass is retried. */
const looping = defineGraph({
  name: 'looping',
  state: z.object({
    words: z.array(z.string()).default([]),
    sizes: z.array(z.json()).optional(),
    passes: z.number().default(0),
  }),
  nodes: ({ run, each, choose }) => ({
    split: run({ run: async () => ({ words: ['a', 'bad', 'c'] }) }),
    measure: each({
      over: (s) => s.words,
      run: async (_, word: string) => {
        if (word === 'bad' && failures++ === 0) throw new Error('slow');
        return word.length;
      },
      save: 'sizes',
      maxVisits: 5,
    }),
    sum: run({ run: async (s) => ({ passes: s.passes + 1 }) }),
    again: choose({ on: (s) => cases({ enough: s.passes.over(1) }) }),
  }),
}).wire({
  start: 'split',
  edges: {
    split: 'measure',
    measure: { done: 'sum', failed: 'sum', capped: 'end' },
    sum: 'again',
    again: { enough: 'end', else: 'measure' },
  },
});

let events: readonly HistoryEvent[];
beforeAll(async () => {
  await useSourceBundle();
  const { history } = await runInMemory(looping, { input: {} });
  events = (history[0]?.history.events ?? []).map(decodeEvent);
});

/** Returns the lines of a follower who gets the history in these pages. */
function follow(pages: readonly (readonly HistoryEvent[])[]): readonly string[] {
  const projector = createProjector();
  const tell = createStepLines(paint, { run: 'x', resume: null, runnable: (text) => text });
  const lines: string[] = [];
  for (const page of pages) {
    projector.pushSteps(page, (view) => lines.push(...tell(view, 'steps')));
    lines.push(...tell(projector.view(), 'now'));
  }
  return lines;
}

/** Returns the nodes of the transcript. */
function transcribed(): readonly string[] {
  return events
    .flatMap(createStepEmitter('r'))
    .flatMap((step) => (step.type === 'node-ended' ? [nodeLine(step, paint)] : []));
}

test('the past of a joined run has its nodes in order, with the times of a live watch and of the transcript', () => {
  const live = follow(events.map((event) => [event]));
  expect(live.map((line) => line.replace(/ · [\d.]+ (s|ms)$/, ''))).toEqual([
    'node split · done',
    'node measure · done · 3 of 3 items · 4 attempts in all',
    'node sum · done',
    'node again · exit else',
    'node measure · done · 3 of 3 items',
    'node sum · done',
    'node again · exit enough',
  ]);
  expect(live).toEqual(transcribed());
  expect(follow([events])).toEqual(live);
  for (let at = 1; at < events.length; at += 1) {
    expect(follow([events.slice(0, at), events.slice(at)])).toEqual(live);
  }
});

test('what a run has received, but not processed, has the time at which it arrived', () => {
  const at = events.findLastIndex(({ type }) => type === 'completed');
  const projector = createProjector();
  for (const event of events.slice(0, at + 1)) projector.push(event);
  const { graph } = projector.view().state ?? {};
  const before = events.findLast(
    ({ id, type }) => type === 'task-started' && id < (events[at]?.id ?? 0),
  );
  expect(graph?.at).toBeNull();
  expect(graph?.visited.find(({ node }) => node === 'sum')?.ms).toBeGreaterThanOrEqual(
    Math.floor(events[at]?.at ?? 0) - Math.floor(before?.at ?? 0),
  );
});
