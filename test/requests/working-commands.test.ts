import { describe, expect, test } from 'vitest';
import { openRequests } from '../../src/core/requests/open-requests.js';
import { stateMemo } from '../../src/core/requests/request-memo.js';
import { runStatus } from '../../src/core/run/status.js';
import type { RunState } from '../../src/core/state/state.js';
import type { RaisedRequest } from '../../src/core/transcript/request.js';
import { ID, runWithCall } from '../support/pending-call.js';

/** A run that ann has started, with a request that expires at 100. */
function asking(raised: Partial<RaisedRequest> = {}): RunState {
  const request = { id: 'r1', kind: 'approval', why: 'a rule', raisedAt: 10, expiresAt: 100 };
  const state = runWithCall('put');
  return {
    ...state,
    turn: { ...state.turn, by: ['ann'] },
    work: [{ name: ID, phase: 'asking', request: { ...request, ...raised } }],
  } as RunState;
}

const notRequester = { deciders: ['not_requester'] } as const;

/** The message of a status, and the command of its request. */
function commandsOf(state: RunState, reader?: { readonly by?: string; readonly now: number }) {
  const { message, pending } = runStatus(state, {
    ended: null,
    run: 'run',
    ...(reader && { reader }),
  });
  return { message, fix: pending[0]?.fix };
}

describe('a status names only commands that would work now', () => {
  const [open] = openRequests(asking(), 'run');
  const fix = open?.fix ?? '';

  test('for whoever may decide', () => {
    for (const reader of [undefined, { now: 99 }, { by: 'ann', now: 99 }]) {
      expect(commandsOf(asking(), reader)).toEqual({ message: `a rule; decide: ${fix}`, fix });
    }
    expect(commandsOf(asking(notRequester), { by: 'bob', now: 50 }).fix).not.toContain('--by');
  });

  test('with the name of another person, if the reader may not decide or is not known', () => {
    for (const reader of [undefined, { now: 50 }, { by: 'ann', now: 50 }]) {
      const found = commandsOf(asking(notRequester), reader);
      expect(found.fix).toMatch(/^perdure approve run r1 --digest \w{12} --by NAME$/);
      expect(found.message).toBe(`a rule; decide: ${found.fix}`);
    }
  });

  test('also in the memo of the run, whose reader is unknown', () => {
    const state = asking({ deciders: [['ann', 'bob']] });
    const memoOf = (revised: object) =>
      stateMemo({ ...state, config: { ...state.config, ...revised } }, 'run').requests;
    const [now] = memoOf({ revised: true });
    expect(now?.fix).toMatch(/^perdure approve run r1 --digest \w{12} --by NAME$/);
    expect(now).toMatchObject({ deciders: [['ann', 'bob']] });
    const [before] = memoOf({ revised: undefined });
    expect(before?.fix).not.toContain('--by');
    expect(before).not.toHaveProperty('deciders');
  });

  test('none after the request has expired, though no worker has noticed', () => {
    for (const state of [asking(), asking(notRequester)]) {
      expect(commandsOf(state, { by: 'ann', now: 100 })).toEqual({
        message: 'a rule; it has expired, so it can no longer be decided',
        fix: 'perdure inbox run r1',
      });
    }
  });
});
