import { withArguments } from '../../client/read-request.js';
import { BlobError } from '../../storage/blob-store.js';
import { decidingCommands } from '../../core/requests/commands.js';
import type { Request } from '../../core/requests/request.js';
import type { CliContext } from '../context.js';
import { nextCommandFor } from '../reports/next-command.js';
import { requestLines } from './request-lines.js';

/** The run that made a request, and the queue of its workers. */
export interface AskingRun {
  readonly id: string;
  readonly taskQueue: string;
}

/** How a request is shown. */
export interface ShowOptions {
  /** The stream that the lines are written to; its width applies. */
  readonly to: 'stdout' | 'stderr';
  /** Truncate nothing. */
  readonly full?: boolean;
  /** The answers follow at a prompt. */
  readonly prompts?: boolean;
}

/**
 * Returns a request, formatted for people, with the commands to decide on this server and queue.
 */
export async function shownRequest(
  context: CliContext,
  { run, request }: { readonly run: AskingRun; readonly request: Request },
  { to, full = false, prompts = false }: ShowOptions,
): Promise<readonly string[]> {
  const now = Date.now();
  const read = await readable(context, request);
  const command = (words: readonly string[]) => nextCommandFor(context, run, words);
  const commands = await Promise.all(
    decidingCommands(run.id, request, now).map(async ({ words, purpose }) => ({
      command: await command(words),
      purpose,
    })),
  );
  const whole = await command(['inbox', run.id, request.id, '--full']);
  const view = { run: run.id, ...read, commands, whole, prompts };
  return requestLines(view, { width: columnsOf(to), full, now });
}

/**
 * Reads arguments from the blob store. If the store is elsewhere, `unreadable` holds the reason.
 */
export async function readable(
  { home, env }: CliContext,
  request: Request,
): Promise<{ readonly request: Request; readonly unreadable: string | null }> {
  if (!request.argumentsBlob && !request.parsedBlob) return { request, unreadable: null };
  const { openStores } = await import('../../storage/file-stores.js');
  try {
    const { blobs } = openStores(home, env);
    return { request: await withArguments(request, blobs), unreadable: null };
  } catch (error) {
    if (!BlobError.isInstance(error)) throw error;
    return { request, unreadable: `${error.message}; use the workers' PERDURE_HOME` };
  }
}

/** Returns the width of a terminal. A program that reads our output gets whole lines. */
export function columnsOf(stream: 'stdout' | 'stderr'): number {
  const { isTTY, columns } = process[stream];
  return isTTY ? columns || 80 : Infinity;
}
