import { isCancellation } from '@temporalio/workflow';
import type { BlockedReason } from '../core/blocked.js';
import type { Json } from '../core/json.js';
import { problemOf } from './problem.js';
import { inFlight, type Session } from './run-context.js';
import { leave, LEFT, mustLeave, type Left, type LeftWork } from './standing.js';
import { breakably, BROKEN, resumedSince, unpaused, untilReadable } from './waits.js';

/** The first probe of a blocked run; then twice as long each time. */
const FIRST_PROBE_MS = 30_000;
/** Another worker may have what this one lacks, and looking there costs nothing. */
const SEARCH_MS = 1_000;
const LONGEST_PROBE_MS = 60 * 60_000;

interface Block<B extends BlockedReason> {
  readonly reason: B;
  /** Milliseconds before it is worth asking again. */
  readonly waitMs: number;
  /** SHA-256 of the blob that has to be readable first. */
  readonly blob?: string;
  /** The reply that the work has paid for already. */
  readonly paid?: Json;
}

/** A kind of work with the reasons that can block it. */
export interface Blockable<B extends BlockedReason, T> {
  /** Call id, `model`, `retrieve`, `agent`, `archive`, or `fork`. */
  readonly name: string;
  readonly reasons: readonly B[];
  /** `resume` may break a probe off to ask at once; not where the probe may have begun to act. */
  readonly breakable: boolean;
  /** Looks for a worker that can do the work and does none of it: a probe begins with this. */
  readonly find?: (blocked: B) => Promise<unknown>;
  /** `blocked` marks a probe: the activity waits the same trouble out where it has retries. */
  readonly attempt: (blocked: B | undefined, paid: Json | undefined) => Promise<T>;
  /** The segment is not changed while it is blocked: the next one could not take it up here. */
  readonly stays?: true;
}

/** Where blocked work begins: its first attempt failed, or a segment has left it so. */
export type BlockedAt = { readonly error: unknown; readonly resumes: number } | LeftWork;

/**
 * Retries work until it is no longer blocked. What can be fixed from outside blocks the run, visibly:
 * after a while a probe is scheduled, which Temporal retries without a further event of history (a
 * `once` tool has no retries, so only the search for a worker is retried), and `resume` makes the
 * next attempt at once. Returns `LEFT` where the segment is full: the next one goes on here.
 *
 * A blob that cannot be read is waited for first, by an activity that only reads it. Work that holds
 * a paid reply is not left: before it is taken up, a message may join the prompt that was paid for.
 *
 * Rejects with what is no block, and with the cancellation when the work is broken off.
 */
export async function mend<B extends BlockedReason, T>(
  session: Session,
  work: Blockable<B, T>,
  from: BlockedAt,
): Promise<T | Left> {
  const { name } = work;
  let { resumes } = from;
  let block = 'error' in from ? judge(session, work, from.error) : taken(work, from);
  let probeMs = 'error' in from ? firstProbeMs(block) : from.probeMs;
  let paid = block?.paid;
  let left = false;
  // Each blob is asked for at once the first time, for that costs next to nothing. Where a worker
  // can read it and the work still fails, they do not share one store: the pace of all blocks holds.
  const asked = new Set<string>();
  const still = (): string | null => (work.stays || paid !== undefined ? null : name);
  const isOver = (): boolean => still() !== null && mustLeave(session, name);
  const leaveNow = (): Left => {
    left = true;
    const { blob } = block ?? {};
    return leave(session, { name, probeMs, resumes, ...(blob !== undefined && { blob }) });
  };
  try {
    for (;;) {
      if (block !== null) {
        const { reason, blob } = block;
        const isHasty = reason === 'storage' && !asked.has(blob ?? '');
        asked.add(blob ?? '');
        const waitMs = isHasty ? 0 : Math.max(probeMs, block.waitMs);
        const since = { still: still(), resumes, waitMs };
        const resumed = !isHasty && (await resumedSince(session, since));
        if (!resumed && isOver()) return leaveNow();
        if (!resumed && blob !== undefined) {
          await untilReadable(session, still(), { sha256: blob, work: name });
          if (session.resumes === resumes && isOver()) return leaveNow();
        }
        if (resumed || blob !== undefined) block = null;
      }
      if (block === null) unblock(session, name);
      if (session.state.paused && !(await unpaused(session, still()))) return leaveNow();
      if (!isSearched(block)) probeMs = Math.min(2 * probeMs, LONGEST_PROBE_MS);
      resumes = session.resumes;
      try {
        const done = await (block === null
          ? inFlight(session, () => work.attempt(undefined, paid))
          : probe(session, { ...work, reason: block.reason, paid, still: still() }));
        if (done !== BROKEN) return done;
        if (isOver()) return leaveNow();
        block = null;
      } catch (error) {
        block = judge(session, work, error);
        paid = block?.paid ?? paid;
      }
    }
  } finally {
    if (!left) unblock(session, name);
  }
}

/** Retries work that may not be left: while it is blocked, the run stays in its segment. */
export async function mendInPlace<B extends BlockedReason, T>(
  session: Session,
  work: Blockable<B, T>,
  from: Exclude<BlockedAt, LeftWork>,
): Promise<T> {
  const done = await mend(session, { ...work, stays: true }, from);
  if (done === LEFT) throw new Error(`${work.name} was left`);
  return done;
}

interface Probe<B extends BlockedReason, T> extends Blockable<B, T> {
  readonly reason: B;
  readonly paid: Json | undefined;
  readonly still: string | null;
}

async function probe<B extends BlockedReason, T>(
  session: Session,
  { find, attempt, breakable, reason, paid, still }: Probe<B, T>,
): Promise<T | typeof BROKEN> {
  if (find !== undefined) {
    const found = await breakably(session, still, () => find(reason));
    if (found === BROKEN) return BROKEN;
  }
  if (breakable) return await breakably(session, still, () => attempt(reason, paid));
  return await inFlight(session, () => attempt(reason, paid));
}

function firstProbeMs(block: Block<BlockedReason> | null): number {
  return isSearched(block) ? SEARCH_MS : FIRST_PROBE_MS;
}

/** A worker is looked for: that is retried by Temporal, without an event for each try. */
function isSearched(block: Block<BlockedReason> | null): boolean {
  return block?.reason === 'tool_missing' || block?.reason === 'agent_missing';
}

/** A block that a segment has left. */
function taken<B extends BlockedReason, T>(
  { reasons }: Blockable<B, T>,
  { reason, blob }: LeftWork,
): Block<B> | null {
  const known = reasons.find((one) => one === reason);
  if (known === undefined) return null;
  return { reason: known, waitMs: 0, ...(blob !== undefined && { blob }) };
}

/** Shows a block. @returns null where `resume` broke a probe off, so that it is asked again at once */
function judge<B extends BlockedReason, T>(
  session: Session,
  work: Blockable<B, T>,
  error: unknown,
): Block<B> | null {
  if (session.interruption !== null) throw error;
  if (isCancellation(error) && work.breakable) return null;
  const problem = problemOf(error);
  const reason = work.reasons.find((known) => known === problem?.reason);
  if (problem?.type !== 'blocked' || reason === undefined) throw error;
  const { message, reports, definition, blob, paid, waitMs = 0 } = problem;
  session.blocked.set(work.name, {
    reason,
    message,
    ...(reports && { reports }),
    ...(definition !== undefined && { definition }),
  });
  session.changed();
  return {
    reason,
    waitMs,
    ...(blob !== undefined && { blob }),
    ...(paid !== undefined && { paid }),
  };
}

function unblock(session: Session, name: string): void {
  if (session.blocked.delete(name)) session.changed();
}
