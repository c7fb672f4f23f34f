import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import {
  type Below,
  type BlockedRun,
  NOTHING_BELOW,
  awaitsAgent,
  awaitsOnlyAgents,
  readBelow,
} from '../../client/below.js';
import type { OpenRequest } from '../../client/requests.js';
import { statusText } from '../../core/state/status-text.js';
import { visibleMessage } from '../../core/state/summaries.js';
import type { Projection } from '../../history/projection.js';
import { describeRun } from '../../history/read-run.js';
import type { CliContext } from '../context.js';
import { oneLine, wrapped } from '../format/format.js';
import { nextCommandAbout, runnableText } from '../reports/next-command.js';
import { columnsOf, inboxLines } from './show-request.js';

/** Returns the lines about what the runs below a run wait for; none if they wait for nothing. */
export function belowLines(
  context: CliContext,
  { requests, blocked }: Below,
  to: 'stdout' | 'stderr',
): readonly string[] {
  const width = columnsOf(to);
  const show = (one: OpenRequest) => nextCommandAbout(context, ['inbox', one.run, one.id]);
  const asking = 'A run that this run called is waiting for a decision; decide in that run:';
  return [
    ...(requests.length === 0 ? [] : [asking]),
    ...(requests.length === 0 ? [] : inboxLines(requests, { width, now: Date.now(), show })),
    ...blocked.flatMap((one) => blockedLines(context, one, width)),
  ];
}

/** Returns the lines about a blocked run below a run. */
function blockedLines(
  context: CliContext,
  { run, agent, reason, message }: BlockedRun,
  width: number,
): readonly string[] {
  const status = statusText({ status: 'blocked', reason });
  return [
    ...wrapped(
      `A run that this run called is ${status}, agent ${oneLine(agent ?? 'unknown')}:`,
      width,
    ),
    ...wrapped(visibleMessage(runnableText(context, message)), width),
    nextCommandAbout(context, ['status', run]),
  ];
}

interface BelowOptions {
  /** The id of the calling run. */
  readonly id: string;
  /** Returns the run as last read; null before the first read. */
  readonly view: () => Projection | null;
  /** The digests of the requests that a person at the terminal has seen; null without a terminal. */
  readonly seen: ReadonlySet<string> | null;
  /** The run as it was before; a worker that has just started may release what is blocked. Null if it is new. */
  readonly joined: object | null;
  /** When each run was first found blocked, by the monotonic clock in ms: also by earlier watches of the run. */
  readonly foundAt: Map<string, number>;
  /** Shows the lines about a run that is found blocked. */
  readonly screen: { line(text: string): void };
  readonly signal: AbortSignal;
}

/**
 * The first wait before a query; the history of a run does not show what the runs wait for that it
 * has called.
 */
const FIRST_MS = 1_000;
const MAX_DELAY_MS = 10_000;
/** A called run that is blocked tries again within this time if a worker starts. */
const PATIENCE_MS = 10_000;

/**
 * Resolves with what called runs wait for as soon as it ends the watch of the run: requests that the
 * person at the terminal has not seen; or, without a terminal, anything once the run only waits for
 * called runs. Resolves with nothing when the signal aborts. Queries the server only while a called
 * agent works for the run, and less often over time.
 */
export async function watchBelow(
  context: CliContext,
  client: Client,
  { id, view, seen, joined, foundAt, screen, signal }: BelowOptions,
): Promise<Below> {
  let waitMs = FIRST_MS;
  while (!signal.aborted) {
    await pause(waitMs, undefined, { signal }).catch(() => undefined);
    const run = view();
    if (signal.aborted) break;
    if (run === null || !awaitsAgent(run)) {
      waitMs = FIRST_MS;
      continue;
    }
    waitMs = Math.min(MAX_DELAY_MS, waitMs * 1.5);
    const { requests, blocked } = await findBelow(client, id);
    const now = performance.now();
    const isLasting = (one: BlockedRun): boolean =>
      joined === null || now - (foundAt.get(one.run) ?? now) >= PATIENCE_MS;
    const unseen = requests.filter(
      ({ digest, checking }) => seen === null || (!seen.has(digest) && checking !== true),
    );
    const counted = { requests: unseen, blocked: seen ? [] : blocked.filter(isLasting) };
    if (!isNothing(counted) && (seen !== null || awaitsOnlyAgents(run))) return counted;
    for (const known of foundAt.keys()) {
      if (!blocked.some((one) => one.run === known)) foundAt.delete(known);
    }
    for (const one of blocked) {
      if (foundAt.has(one.run)) continue;
      foundAt.set(one.run, now);
      // The report of the command that leaves has the lines.
      if (seen === null) continue;
      blockedLines(context, one, columnsOf('stderr')).forEach((text) => screen.line(text));
    }
  }
  return NOTHING_BELOW;
}

/** Whether the runs below a run wait for nothing. */
export function isNothing({ requests, blocked }: Below): boolean {
  return requests.length === 0 && blocked.length === 0;
}

/** Returns nothing if the server does not answer; the watch of the run reports that. */
async function findBelow(client: Client, id: string): Promise<Below> {
  try {
    return await readBelow(client, { id, description: await describeRun(client, id) });
  } catch {
    return NOTHING_BELOW;
  }
}
