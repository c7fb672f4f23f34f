import { once } from 'node:events';
import type { ServerHandle } from '../../server/server-settings.js';
import type { CliContext } from '../context.js';
import { isObject } from '../../core/text/json.js';
import { type RunningConsole, consolesOf } from '../hosting/consoles.js';
import { PORT } from '../hosting/serving.js';
import { type Place, nextCommandOf } from './next-command.js';

/** Returns the page of a run in the Temporal UI; null if no UI is known. */
export function uiLink({ uiUrl, namespace }: ServerHandle, id: string): string | null {
  if (uiUrl === null) return null;
  return `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`;
}

/**
 * Prints the link to the run's page in the console, which this process serves until the command ends.
 * Returns false if the console is not served. `rests`: the command ends at once, so it prints no link.
 */
export async function noteConsole(
  context: Pick<CliContext, 'console' | 'note'>,
  { id, rests = false }: { readonly id: string; readonly rests?: boolean },
): Promise<boolean> {
  const url = await context.console();
  if (url === null) return false;
  if (!rests) context.note(`Console, while this command runs: ${pageOf(url, id)}`);
  return true;
}

/** Where a console that shows the run may be. */
interface Consoles {
  /** The consoles that run on this machine for the run's server. */
  readonly announced: readonly RunningConsole[];
  /** The port that `serve` would use. */
  readonly port?: number;
}

/** Prints where the run is in the console once this command has ended. */
export async function noteLaterConsole(
  context: CliContext,
  run: Parameters<typeof laterConsole>[1],
): Promise<void> {
  const announced = await consolesOf(context.home, await context.server());
  context.note(await laterConsole(context, run, { announced }));
}

/**
 * Returns where the run is in the console once this command has ended. `lack`: why a worker of this
 * configuration would block the run; null if it would not.
 */
export async function laterConsole(
  place: Place,
  { id, lack }: { readonly id: string; readonly lack: string | null },
  { announced, port = PORT }: Consoles,
): Promise<string> {
  const [atUsual, ...others] = await Promise.all([
    consoleAt(`http://127.0.0.1:${port}`, id),
    ...announced.map(async ({ url }) => await consoleAt(url, id)),
  ]);
  // A console that has not announced its server may show another run with this id. One with keys does
  // not say what it shows, but has announced that it shows this server.
  const shown = announced.find((_, at) => others[at] === 'shows' || others[at] === 'locked');
  if (shown !== undefined) return `See it in the console: ${pageOf(shown.url, id)}`;
  const other = atUsual === 'free' ? [] : ['--port', '0'];
  const words = ['serve', ...other, ...(lack === null ? [] : ['--no-worker'])];
  return `See it in the console with: ${nextCommandOf(place, words)}`;
}

function pageOf(url: string, id: string): string {
  return `${url}/#/run/${encodeURIComponent(id)}`;
}

/** How long a console on this machine may take to answer. */
const ANSWER_MS = 2_000;

/** Whether a console that shows the run listens there, or one that asks for a key, or another program, or none. */
async function consoleAt(url: string, id: string): Promise<'shows' | 'locked' | 'taken' | 'free'> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await fetch(`${url}/v1/runs/${encodeURIComponent(id)}`, { signal });
    if (answer.status === 401) return 'locked';
    const status: unknown = await answer.json();
    const { id: shown } = isObject(status) ? status : {};
    return answer.ok && shown === id ? 'shows' : 'taken';
  } catch (error) {
    // Only a program that listens accepts the connection.
    const cause = error instanceof Error ? error.cause : undefined;
    const { code } = isObject(cause) ? cause : {};
    return code === 'ECONNREFUSED' ? 'free' : 'taken';
  }
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
