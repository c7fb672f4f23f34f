import { describe, expect, test } from 'vitest';
import { apply, eventsOf, isAtOnce, nextActionAt, record, type Run } from '../../src/core/loop.js';
import type { RunState } from '../../src/core/state.js';
import { checkChoices } from '../support/sim/check.js';
import { carry, play, type Played } from '../support/sim/play.js';

const json = (state: RunState): unknown => JSON.parse(JSON.stringify(state));

/** Reads a run from its facts alone: it takes the actions that need no time after each fact. */
function read({ first, log }: Played): { last: RunState; carried: readonly RunState[] } {
  const run: Run = { state: first };
  const carried: RunState[] = [];
  log.forEach((entries, index) => {
    if (index > 0) {
      carried.push(run.state);
      apply(run, { type: 'segment-begun' });
      run.state = carry(run.state);
    }
    for (const { fact, segment } of entries) {
      record(run, fact);
      for (;;) {
        const action = nextActionAt(run, segment, fact.at);
        if (!isAtOnce(action)) break;
        for (const event of eventsOf(action, fact.at)) apply(run, event);
      }
    }
  });
  return { last: run.state, carried };
}

describe('a run in a world of chance', () => {
  test('is read from its facts alone, in each segment', async () => {
    await checkChoices(async (given) => {
      const played = await play(given);
      const { last, carried } = read(played);
      expect(carried.map(json)).toEqual(played.carried.map(json));
      expect(json(last)).toEqual(json(played.last));
    });
  });

  test('comes to the same end if its state passes through JSON after each fact', async () => {
    await checkChoices(async (given) => {
      const plain = await play(given);
      const saved = await play(given, { isSaved: true });
      expect(json(saved.last)).toEqual(json(plain.last));
      expect(saved.log).toEqual(plain.log);
    });
  });
});
