import { isCancellation } from '@temporalio/workflow';
import type { BlockedReason } from '../core/blocked.js';
import type { Json } from '../core/json.js';
import { activityProblem } from './activity-result.js';
import { CANCELED, resumedSince, runProbe, untilReadable, untilUnpaused } from './blocked-waits.js';
import { defer, DEFERRED, mustDefer, type Deferred, type DeferredWork } from './blocked-work.js';
import { inFlight, type RunContext } from './run-context.js';

/** Delay of the first probe of a blocked run; each further one waits twice as long. */
const FIRST_PROBE_MS = 30_000;
/** Delay of the first search for a worker: searching costs nothing, and another worker may be ready. */
const FIRST_SEARCH_MS = 1_000;
const MAX_PROBE_MS = 60 * 60_000;

interface Block<B extends BlockedReason> {
  readonly reason: B;
  /** Milliseconds to wait at least before the next attempt. */
  readonly waitMs: number;
  /** SHA-256 of the blob that has to be readable first. */
  readonly blob?: string;
  /** The reply that the work has paid for already. */
  readonly paid?: Json;
}

/** Work that can be blocked, with the reasons that block it. */
export interface Blockable<B extends BlockedReason, T> {
  /** Call id, `model`, `retrieve`, `agent`, `archive`, or `fork`. */
  readonly name: string;
  readonly reasons: readonly B[];
  /** `resume` may cancel a probe; false if the probe may have begun to act. */
  readonly cancelable: boolean;
  /** Finds a worker that can do the work, and does none of it. A probe starts with this. */
  readonly find?: (blocked: B) => Promise<unknown>;
  /** `blocked` marks a probe: the activity then waits for the same fault to pass, if it has retries. */
  readonly attempt: (blocked: B | undefined, paid: Json | undefined) => Promise<T>;
  /** The work cannot be deferred to the next segment. */
  readonly inPlace?: true;
}

/** Where blocked work starts: after a failed attempt, or where a segment deferred it. */
export type BlockedAt = { readonly error: unknown; readonly resumes: number } | DeferredWork;

/**
 * Retries work until it is no longer blocked. What can be fixed from outside blocks the run, visibly.
 * After a delay, a probe is scheduled, which Temporal retries without further history events (a `once`
 * tool has no retries, so only the search for a worker is retried). `resume` starts the next attempt at
 * once. Returns `DEFERRED` if the segment is full; the next one continues here.
 *
 * If a blob cannot be read, an activity that only reads it runs first. Work that holds a paid reply is
 * not deferred, because a message could join the prompt that was paid for.
 *
 * Rejects with any failure that is not a block, and with the cancellation if the run is interrupted.
 */
export async function retryUntilUnblocked<B extends BlockedReason, T>(
  run: RunContext,
  work: Blockable<B, T>,
  from: BlockedAt,
): Promise<T | Deferred> {
  const { name } = work;
  let { resumes } = from;
  let block = 'error' in from ? classifyFailure(run, work, from.error) : deferredBlock(work, from);
  let probeMs = 'error' in from ? firstProbeMs(block) : from.probeMs;
  let paid = block?.paid;
  let deferred = false;
  // Each blob is checked at once the first time, because that is cheap. If a worker can read it and the
  // work still fails, the workers do not share one store, and the ordinary delays apply.
  const checked = new Set<string>();
  const deferrable = (): string | null => (work.inPlace || paid !== undefined ? null : name);
  const hasToDefer = (): boolean => deferrable() !== null && mustDefer(run, name);
  const deferNow = (): Deferred => {
    deferred = true;
    const { blob } = block ?? {};
    return defer(run, { name, probeMs, resumes, ...(blob !== undefined && { blob }) });
  };
  try {
    for (;;) {
      if (block !== null) {
        const { reason, blob } = block;
        const isImmediate = reason === 'storage' && !checked.has(blob ?? '');
        checked.add(blob ?? '');
        const waitMs = isImmediate ? 0 : Math.max(probeMs, block.waitMs);
        const wait = { deferrable: deferrable(), resumes, waitMs };
        const resumed = !isImmediate && (await resumedSince(run, wait));
        if (!resumed && hasToDefer()) return deferNow();
        if (!resumed && blob !== undefined) {
          await untilReadable(run, deferrable(), { sha256: blob, work: name });
          if (run.resumes === resumes && hasToDefer()) return deferNow();
        }
        if (resumed || blob !== undefined) block = null;
      }
      if (block === null) unblock(run, name);
      if (run.state.paused && !(await untilUnpaused(run, deferrable()))) return deferNow();
      if (!isSearch(block)) probeMs = Math.min(2 * probeMs, MAX_PROBE_MS);
      resumes = run.resumes;
      try {
        const done = await (block === null
          ? inFlight(run, () => work.attempt(undefined, paid))
          : probe(run, { ...work, reason: block.reason, paid, deferrable: deferrable() }));
        if (done !== CANCELED) return done;
        if (hasToDefer()) return deferNow();
        block = null;
      } catch (error) {
        block = classifyFailure(run, work, error);
        paid = block?.paid ?? paid;
      }
    }
  } finally {
    if (!deferred) unblock(run, name);
  }
}

/** Like `retryUntilUnblocked`, for work that cannot be deferred: the run stays in its segment. */
export async function retryInSegment<B extends BlockedReason, T>(
  run: RunContext,
  work: Blockable<B, T>,
  from: Exclude<BlockedAt, DeferredWork>,
): Promise<T> {
  const done = await retryUntilUnblocked(run, { ...work, inPlace: true }, from);
  if (done === DEFERRED) throw new Error(`${work.name} was deferred`);
  return done;
}

interface Probe<B extends BlockedReason, T> extends Blockable<B, T> {
  readonly reason: B;
  readonly paid: Json | undefined;
  readonly deferrable: string | null;
}

async function probe<B extends BlockedReason, T>(
  run: RunContext,
  { find, attempt, cancelable, reason, paid, deferrable }: Probe<B, T>,
): Promise<T | typeof CANCELED> {
  if (find !== undefined) {
    const found = await runProbe(run, deferrable, () => find(reason));
    if (found === CANCELED) return CANCELED;
  }
  if (cancelable) return await runProbe(run, deferrable, () => attempt(reason, paid));
  return await inFlight(run, () => attempt(reason, paid));
}

function firstProbeMs(block: Block<BlockedReason> | null): number {
  return isSearch(block) ? FIRST_SEARCH_MS : FIRST_PROBE_MS;
}

/** Whether the probe searches for a worker. Temporal retries that without an event per attempt. */
function isSearch(block: Block<BlockedReason> | null): boolean {
  return block?.reason === 'tool_missing' || block?.reason === 'agent_missing';
}

/** The block with which a segment deferred the work; null if the work has no such reason any more. */
function deferredBlock<B extends BlockedReason, T>(
  { reasons }: Blockable<B, T>,
  { reason, blob }: DeferredWork,
): Block<B> | null {
  const known = reasons.find((each) => each === reason);
  if (known === undefined) return null;
  return { reason: known, waitMs: 0, ...(blob !== undefined && { blob }) };
}

/**
 * Returns the block that a failure means, and shows it. Returns null if `resume` has canceled a probe:
 * the work is attempted at once. Throws the failure if it is not a block.
 */
function classifyFailure<B extends BlockedReason, T>(
  run: RunContext,
  work: Blockable<B, T>,
  error: unknown,
): Block<B> | null {
  if (run.interruption !== null) throw error;
  if (isCancellation(error) && work.cancelable) return null;
  const problem = activityProblem(error);
  const reason = work.reasons.find((known) => known === problem?.reason);
  if (problem?.type !== 'blocked' || reason === undefined) throw error;
  const { message, reports, definition, blob, paid, waitMs = 0 } = problem;
  run.blocked.set(work.name, {
    reason,
    message,
    ...(reports && { reports }),
    ...(definition !== undefined && { definition }),
  });
  run.changed();
  return {
    reason,
    waitMs,
    ...(blob !== undefined && { blob }),
    ...(paid !== undefined && { paid }),
  };
}

function unblock(run: RunContext, name: string): void {
  if (run.blocked.delete(name)) run.changed();
}
