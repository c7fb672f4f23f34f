import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import {
  type Run,
  apply,
  isAtOnce,
  nextActionAt,
  record,
  toEvents,
} from '../../src/core/interpret/loop.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { historyFromJson } from '../../src/history/history-event.js';
import { createProjector } from '../../src/history/projection.js';
import type { Change } from '../../src/history/reader/run-view.js';
import { MEANINGS, advances } from '../../src/history/emit-steps.js';
import { begun, config } from '../support/scripts.js';
import { checkRuns } from '../support/sim/check.js';
import { carry, type Played } from '../support/sim/play.js';
import { viewOf } from '../support/view.js';

const FOLDER = new URL('../histories/', import.meta.url);

/** Returns the changes that a history shows. */
function changesIn(text: string): readonly Change[] {
  const changes: Change[] = [];
  const projector = createProjector((change) => changes.push(change));
  for (const raw of historyFromJson(JSON.parse(text)).events ?? [])
    projector.push(decodeEvent(raw));
  return changes;
}

/** Returns the changes of a simulated run. */
function changesOf({ first, log }: Played): readonly Change[] {
  const changes: Change[] = [];
  const run: Run = {
    state: first,
    applied: (event, before) => changes.push({ event, before, after: run.state }),
  };
  log.forEach((entries, index) => {
    if (index > 0) {
      apply(run, { type: 'segment-begun' });
      run.state = carry(run.state);
    }
    for (const { fact, segment } of entries) {
      record(run, fact);
      for (;;) {
        const action = nextActionAt(run, segment, fact.at);
        if (!isAtOnce(action)) break;
        for (const event of toEvents(action, fact.at)) apply(run, event);
      }
    }
  });
  return changes;
}

/** Returns the changes that add steps of which the meaning of their event says nothing. */
function unsaid(changes: readonly Change[]): readonly string[] {
  return changes.flatMap((change) => {
    const { event, before, after } = change;
    const view = viewOf(after);
    const said = MEANINGS[event.type](change, view).map(({ type }) => type);
    const missing = advances(change, view).filter(({ type }) => !said.includes(type));
    const isPaused = before.paused === after.paused || said.some((type) => type.startsWith('run-'));
    const isEnded = after.recent === before.recent || said.includes('turn-ended');
    const rest = [...(isPaused ? [] : ['a pause']), ...(isEnded ? [] : ['the end of a turn'])];
    return [...missing.map(({ type }) => type), ...rest].map((what) => `${event.type}: ${what}`);
  });
}

describe('the steps that an event of a run means', () => {
  test.each(Object.entries(MEANINGS))('%s: nothing, if it changes nothing', (type, meaning) => {
    const state = begun(config());
    const steps = meaning({ before: state, after: state }, viewOf(state));
    expect(steps.map((step) => step.type)).toEqual(type === 'turn-begun' ? ['turn-begun'] : []);
  });

  test('are all that it changes, in each recorded history', async () => {
    const seen = new Set<string>();
    for (const name of await readdir(FOLDER)) {
      const changes = changesIn(await readFile(new URL(name, FOLDER), 'utf8'));
      for (const { event } of changes) seen.add(event.type);
      expect({ name, unsaid: unsaid(changes) }).toEqual({ name, unsaid: [] });
    }
    expect(seen.size).toBeGreaterThan(25);
  });

  test('are all that it changes, in simulated runs', async () => {
    await checkRuns((played) => {
      expect(unsaid(changesOf(played))).toEqual([]);
    });
  });
});
