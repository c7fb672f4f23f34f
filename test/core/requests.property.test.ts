import { describe, expect, test } from 'vitest';
import { askingWork } from '../../src/core/requests/open-requests.js';
import type { Fact } from '../../src/core/run/events.js';
import type { RunState } from '../../src/core/state/state.js';
import type { ToolCall } from '../../src/core/transcript/messages.js';
import { openCallById } from '../../src/core/state/turn.js';
import { findWork } from '../../src/core/state/work.js';
import { checkRuns } from '../support/sim/check.js';

/** Watches the requests of one run, and records violations. */
function watchRequests() {
  const faults: string[] = [];
  const raised = new Map<string, number>();
  const decided = new Map<string, string>();
  const approved = new Set<string>();
  let newest = 0;
  const look = (state: RunState, fact: Fact): void => {
    for (const { request } of askingWork(state)) {
      if (raised.has(request.id)) continue;
      const number = Number(request.id.slice(1));
      if (!(number > newest)) faults.push(`${request.id} comes after r${newest}`);
      newest = Math.max(newest, number);
      raised.set(request.id, request.expiresAt ?? Infinity);
    }
    for (const { what, request = '', as = '', at, id, call = '', refused } of state.decisions ??
      []) {
      if (what !== 'resolve' || refused !== undefined) continue;
      const one = `${as} at ${at} by ${id}`;
      const before = decided.get(request) ?? one;
      if (before !== one) faults.push(`${request} is decided twice: ${before}, ${one}`);
      decided.set(request, one);
      if (as !== 'expired' && at >= (raised.get(request) ?? Infinity)) faults.push(`${one}: late`);
      if (as === 'approve' || as === 'edit') approved.add(call);
    }
    if (fact.type === 'scheduled') begun(state, fact.task.activity, fact.task.input);
  };
  const begun = (state: RunState, activity: string, input: unknown): void => {
    const { call: given, find } = input as { call?: ToolCall; find?: true };
    if (activity !== 'runTool' || find || given === undefined) return;
    const call = openCallById(state, given.id);
    const work = findWork(state, given.id);
    if (call?.verdict === undefined) return;
    const isApproved = work?.approved === true && approved.has(given.id);
    const isGranted = work?.grant !== undefined;
    if (!isApproved && !(call.verdict.then === 'ask' && isGranted))
      faults.push(`${given.id} begins`);
  };
  return { faults, look };
}

describe('the requests of a simulated run', () => {
  test('let no call begin without approval, are numbered, and are decided once and in time', async () => {
    let watch = watchRequests();
    await checkRuns(
      () => {
        expect(watch.faults).toEqual([]);
      },
      () => {
        watch = watchRequests();
        return { noted: ({ run: { state } }, fact) => watch.look(state, fact) };
      },
    );
  });
});
