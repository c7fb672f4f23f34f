import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import { formatBytes } from '../../core/text/summaries.js';
import { freeSpace, MIN_FREE_BYTES } from '../../storage/free-space.js';
import type { ServerHandle } from '../../server/server-handle.js';
import type { CliContext } from '../context.js';
import { NoServerError, NotDeliveredError } from '../../core/errors.js';

/** A server that cannot write answers late or never, so the reason is shown after this time. */
const ANSWER_WITHIN_MS = 1_000;

/**
 * Runs `work`, which queries the server. If the disk of the embedded server is full, notes that
 * first, and rejects with a `NoServerError` if the server does not answer within a second.
 */
export async function withDiskCheck<T>(context: CliContext, work: () => Promise<T>): Promise<T> {
  const full = await fullDiskMessage(await context.server());
  if (full === null) return await work();
  context.note(full);
  const client = await context.client();
  try {
    return await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, work);
  } catch (cause) {
    if (!isServerError(cause)) throw cause;
    throw new NoServerError(`The server does not answer. ${full}`, { cause });
  }
}

function isServerError(error: unknown): boolean {
  return (
    isGrpcServiceError(error) ||
    error instanceof ServiceError ||
    NoServerError.isInstance(error) ||
    NotDeliveredError.isInstance(error)
  );
}

/**
 * Returns why the embedded server may not answer; null for any other server, or if space is left.
 */
export async function fullDiskMessage({ pid, home }: ServerHandle): Promise<string | null> {
  const free = pid === null ? null : await freeSpace(home);
  if (free === null || free >= MIN_FREE_BYTES) return null;
  return `The disk of ${home} is full (${formatBytes(free)} left); free space, and runs resume by themselves.`;
}
