import { once } from 'node:events';
import type { ServerHandle } from '../../server/server-settings.js';
import type { CliContext } from '../context.js';
import { nextCommandOf } from './next-command.js';

/** Returns the page of a run in the Temporal UI; null if no UI is known. */
export function uiLink({ uiUrl, namespace }: ServerHandle, id: string): string | null {
  if (uiUrl === null) return null;
  return `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`;
}

/**
 * Prints the link to the run's page in the console, which this process serves until the command ends.
 * Returns the line to print at the end; null if the console is not served. `lack`: why a worker of this
 * configuration would block the run; null if it would not.
 */
export async function noteConsole(
  context: CliContext,
  { id, lack }: { readonly id: string; readonly lack: string | null },
): Promise<string | null> {
  const url = await context.console();
  if (url === null) return null;
  context.note(`Console, while this command runs: ${url}/#/run/${encodeURIComponent(id)}`);
  return `See it in the console with: ${nextCommandOf(context, ['serve', ...(lack === null ? [] : ['--no-worker'])])}`;
}

/** Keeps the embedded server and the worker up until a key is pressed. */
export async function stayUp(
  context: CliContext,
  id: string,
  interrupt: AbortSignal,
): Promise<void> {
  context.note(uiLink(await context.server(), id) ?? 'No Temporal UI is known.');
  context.note('Press a key to exit.');
  const { stdin } = process;
  stdin.setRawMode(true);
  try {
    await once(stdin, 'data', { signal: interrupt });
  } catch {
    // An interrupt also ends the wait.
  } finally {
    stdin.setRawMode(false);
  }
}
