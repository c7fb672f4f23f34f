import { describe, expect, test } from 'vitest';
import { type Work, WORK, findWork } from '../../src/core/state/work.js';

describe('the fields of work', () => {
  const inFlight = { phase: 'in-flight', as: 'attempt' } as const;
  const agent: Work = { name: WORK.agent, missing: 'no agent "mail"', ...inFlight };
  const model: Work = { name: WORK.model, cut: 4, ...inFlight };
  const call: Work = { name: 'call_1_1_0', key: 'k', ...inFlight };
  const state = { work: [agent, model, call] };

  test('are those of its kind, so that any other is an error when it is compiled', () => {
    expect(findWork(state, WORK.agent)?.missing).toBe('no agent "mail"');
    expect(findWork(state, WORK.model)?.cut).toBe(4);
    expect(findWork(state, 'call_1_1_0')?.key).toBe('k');
    // @ts-expect-error -- the loading of the agent summarizes nothing
    expect(findWork(state, WORK.agent)?.cut).toBeUndefined();
    // @ts-expect-error -- a model call has no idempotency key
    expect(findWork(state, WORK.model)?.key).toBeUndefined();
    // @ts-expect-error -- the archive asks nobody
    expect(findWork(state, WORK.archive)?.request).toBeUndefined();
  });
});
