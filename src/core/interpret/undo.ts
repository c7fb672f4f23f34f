import type { RunEvent } from '../events.js';
import { toWork, type FactOf } from '../facts.js';
import { isFunctionResult } from '../guards/recorded.js';
import type { Verdict } from '../requests/rules.js';
import type { ParsedArguments } from '../transcript/messages.js';
import type { RunState } from '../state.js';
import { findWork, UNDO, type Work } from '../work/work.js';

/** Returns the events when a tool's `undo` ended, or when the rules did not allow it to begin. */
export function undone(state: RunState, fact: FactOf<'completed'>): readonly RunEvent[] {
  const work = undoOf(state, fact);
  const { result } = fact;
  if (work === undefined || !isFunctionResult(result)) return [];
  switch (result.happened) {
    case true:
      return ended(work, 'undone');
    case 'undecided':
      return askToUndo(state, work, { ...result, at: fact.at });
    case 'unknown':
      return ended(work, 'failed', result.message);
    case false:
      return ended(work, 'failed', 'it was not undone');
  }
}

export function undoFailed(
  state: RunState,
  fact: Pick<FactOf<'failed'>, 'task'> & { readonly failure: { readonly message: string } },
): readonly RunEvent[] {
  const work = undoOf(state, fact);
  return work === undefined ? [] : ended(work, 'failed', fact.failure.message);
}

function undoOf(state: RunState, { task }: Pick<FactOf<'failed'>, 'task'>): Work | undefined {
  return findWork(state, toWork(task)?.name ?? '');
}

function askToUndo(
  { unattended }: RunState,
  work: Work,
  {
    verdict,
    parsed,
    at,
  }: { readonly verdict: Verdict; readonly parsed?: ParsedArguments; readonly at: number },
): readonly RunEvent[] {
  const { then, why, deciders, expires } = verdict;
  if (then === 'deny' || unattended === 'deny') return ended(work, 'denied', why);
  const request = {
    kind: 'approval',
    why,
    raisedAt: at,
    ...(expires !== undefined && { expiresAt: at + expires }),
    ...(deciders && { deciders }),
  } as const;
  const call = work.name.slice(UNDO.length);
  return [
    ...(parsed ? [{ type: 'undo-parsed', call, parsed } as const] : []),
    { type: 'request-raised', work: work.name, request },
  ];
}

function ended(
  { name }: Work,
  state: 'undone' | 'failed' | 'denied',
  message?: string,
): readonly RunEvent[] {
  const call = name.slice(UNDO.length);
  const why = message === undefined ? {} : { message: message.slice(0, 500) };
  return [
    { type: 'work-ended', name },
    { type: 'undo-changed', call, state, ...why },
  ];
}
