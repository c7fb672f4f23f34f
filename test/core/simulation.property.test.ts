import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  apply,
  toEvents,
  isAtOnce,
  nextActionAt,
  record,
  type Run,
} from '../../src/core/interpret/loop.js';
import type { RunState } from '../../src/core/state/state.js';
import { checkMoments } from '../support/sim/check.js';
import { carry, play, type Played } from '../support/sim/play.js';

const json = (state: RunState): unknown => JSON.parse(JSON.stringify(state));

interface Read {
  readonly last: RunState;
  readonly carried: readonly RunState[];
  /** The state after each fact, before the actions that follow it. */
  readonly states: readonly RunState[];
}

/** Reads a run from its facts alone: it applies the actions that need no time after each fact. */
function readRun({ first, log }: Played): Read {
  const run: Run = { state: first };
  const carried: RunState[] = [];
  const states: RunState[] = [];
  log.forEach((entries, index) => {
    if (index > 0) {
      carried.push(run.state);
      apply(run, { type: 'segment-begun' });
      run.state = carry(run.state);
    }
    for (const { fact, segment } of entries) {
      record(run, fact);
      states.push(run.state);
      for (;;) {
        const action = nextActionAt(run, segment, fact.at);
        if (!isAtOnce(action)) break;
        for (const event of toEvents(action, fact.at)) apply(run, event);
      }
    }
  });
  return { last: run.state, carried, states };
}

describe('a run in a world of chance', () => {
  test('is read from its facts alone, in each segment and at every moment', async () => {
    await checkMoments(({ played, facts }) => {
      const { last, carried, states: read } = readRun(played);
      expect(carried.map(json)).toEqual(played.carried.map(json));
      expect(json(last)).toEqual(json(played.last));
      const states = facts.map(([{ run }]) => run.state);
      expect(read).toHaveLength(states.length);
      const differs = states.findIndex((state, index) => !isDeepStrictEqual(state, read[index]));
      expect(json(read[differs] ?? played.last)).toEqual(json(states[differs] ?? played.last));
    });
  });

  test('comes to the same end if its state passes through JSON after each fact', async () => {
    await checkMoments(async ({ played: plain }, given) => {
      const saved = await play(given, { isSaved: true });
      expect(json(saved.last)).toEqual(json(plain.last));
      expect(saved.log).toEqual(plain.log);
    });
  });
});
