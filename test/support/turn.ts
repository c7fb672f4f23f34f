import { runLoop, type Effects, type Run } from '../../src/core/loop.js';
import { NEVER_FULL } from '../../src/core/next-action.js';
import type { RunState } from '../../src/core/state.js';

export type Given = Partial<Effects> & Pick<Effects, 'callModel' | 'runCalls'>;

/** The world of a run that nobody disturbs; a wait for people is a fault of the test. */
function quietEffects(given: Given): Effects {
  return {
    now: () => 0,
    segment: () => NEVER_FULL,
    awaitTime: async () => null,
    awaitChange: async ({ type }) => {
      throw new Error(`${type}: nobody comes in this test`);
    },
    recordTurn: () => undefined,
    turnBegun: () => undefined,
    continueAsNew: async () => undefined,
    refreshAgent: async () => null,
    retrieve: async () => ({ type: 'retrieved', documents: [] }),
    archiveMessages: async () => true,
    observe: () => undefined,
    ...given,
  };
}

/** Runs a task run to its end and gives its last state. */
export async function runTurn(from: RunState, given: Given): Promise<RunState> {
  const run: Run = { state: from };
  await runLoop(run, quietEffects(given));
  return run.state;
}
