import type { BlockedReason } from '../blocked.js';
import type { RunEvent } from '../events.js';
import { parseProblem, type ActivityProblem } from '../failure.js';
import type { FactOf } from '../facts.js';
import { toWork } from '../facts.js';
import type { Json } from '../json.js';
import type { RunState } from '../state.js';
import { openCallById } from '../turn.js';
import { findWork, type Block, type Work } from '../work/work.js';

/** Delay in ms of the first probe of blocked work; it doubles for each further probe. */
const FIRST_PROBE_MS = 30_000;
/**
 * Delay in ms of the first search for a worker. It is short because a search is cheap and another
 * worker may be ready.
 */
const FIRST_SEARCH_MS = 1_000;
const MAX_PROBE_MS = 60 * 60_000;

type Blocking = Extract<ActivityProblem, { type: 'blocked' }>;

/** Returns the problem in a failure if it blocks the work for one of these reasons; else null. */
export function blockingProblem(
  { failure }: Pick<FactOf<'failed'>, 'failure'>,
  reasons: readonly BlockedReason[],
): Blocking | null {
  const problem = parseProblem(failure.details);
  return problem?.type === 'blocked' && reasons.includes(problem.reason) ? problem : null;
}

/** Returns the events of blocked work. It is retried later, or immediately on `resume`. */
export function blockWork(
  state: RunState,
  fact: Pick<FactOf<'failed'>, 'at' | 'task'>,
  problem: Blocking,
): readonly RunEvent[] {
  const name = toWork(fact.task)?.name ?? '';
  const begun: Work = findWork(state, name) ?? { name, phase: 'waiting' };
  const { resumed, block: _, found: __, request, proposal, ...work } = begun;
  const paid = problem.paid ?? work.paid;
  const { probeMs, checked, block } = blockUntil(work, problem, fact.at);
  const changed: Work = {
    ...work,
    name,
    probeMs,
    ...(checked.length > 0 && { checked }),
    ...(paid !== undefined && { paid }),
    // If `resume` arrived while the attempt was in flight, the next attempt follows at once.
    ...(!resumed && { block }),
    phase: 'waiting',
  };
  const { definition } = problem;
  // A person can decide only about a call.
  if (definition === undefined || openCallById(state, name) === undefined)
    return [{ type: 'work-changed', work: changed }];
  // A person may accept the tool's current form. The run asks about each form once.
  if (request?.definition === definition) {
    const waiting = { ...changed, request, ...(proposal && { proposal }) };
    return [{ type: 'work-changed', work: waiting }];
  }
  const toAccept = {
    kind: 'tool_changed',
    why: problem.message,
    raisedAt: fact.at,
    definition,
  } as const;
  return [
    { type: 'work-changed', work: changed },
    { type: 'request-raised', work: name, request: toAccept },
  ];
}

function blockUntil(
  work: Pick<Work, 'probeMs' | 'checked'>,
  problem: Blocking,
  at: number,
): { probeMs: number; checked: readonly string[]; block: Block } {
  const { reason, message, reports, definition, blob, waitMs = 0 } = problem;
  const probeMs = nextProbeMs(work.probeMs, problem);
  const before = work.checked ?? [];
  // The first check of each blob is immediate, because it is cheap. If a worker can read the blob
  // but the work still fails, the workers do not share one store, so the usual delays apply.
  const isImmediate = reason === 'storage' && !before.includes(blob ?? '');
  const block: Block = {
    reason,
    message,
    ...(reports && { reports }),
    ...(definition !== undefined && { definition }),
    ...(blob !== undefined && { blob }),
    until: isImmediate ? at : at + Math.max(probeMs, waitMs),
  };
  return { probeMs, checked: isImmediate ? [...before, blob ?? ''] : before, block };
}

function nextProbeMs(before: number | undefined, { reason, elsewhere }: Blocking): number {
  const isSearch = reason === 'tool_missing' || reason === 'agent_missing';
  if (before === undefined) return isSearch || elsewhere ? FIRST_SEARCH_MS : FIRST_PROBE_MS;
  return isSearch ? before : Math.min(2 * before, MAX_PROBE_MS);
}

/**
 * Returns the events of a task that was canceled although nothing interrupts the run. After
 * `resume`, the work is attempted at once. At the end of a segment, it stays blocked and the next
 * segment continues it. `paid`: the task's paid replies, if any.
 */
export function probeCanceled(
  state: RunState,
  fact: FactOf<'cancelled'>,
  paid?: Json,
): readonly RunEvent[] {
  const found = findWork(state, toWork(fact.task)?.name ?? '');
  if (found === undefined) return [];
  const work = { ...found, ...(paid !== undefined && { paid }) };
  return [{ type: 'work-changed', work: work.resumed ? unblocked(work) : stopped(work, fact.at) }];
}

function stopped(work: Work, at: number): Work {
  const { block } = work;
  return { ...work, ...(block && { block: { ...block, until: at } }), phase: 'waiting' };
}

/** Returns the work without its block, to be attempted at once. */
export function unblocked(work: Work): Work {
  const { block: _, found: __, resumed: ___, request: ____, proposal: _____, ...rest } = work;
  return { ...rest, phase: 'waiting' };
}

/** Returns the work after `resume`: blocked work is attempted at once. */
export function resumedWork(work: Work): Work {
  if (work.phase === 'in-flight') return { ...work, resumed: true };
  return work.phase === 'waiting' && work.block !== undefined ? unblocked(work) : work;
}
