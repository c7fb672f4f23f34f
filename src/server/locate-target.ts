import { tmpdir } from 'node:os';
import { basename, dirname, resolve } from 'node:path';
import { NoServerError } from '../core/errors.js';
import {
  connectionTarget,
  DEFAULT_ADDRESS,
  namedAddress,
  type ConnectionSettings,
  type ConnectionTarget,
} from '../temporal/connection.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** How the names of the homes of test servers begin. */
export const TEST_HOME = 'perdure-test-';

/** Whether a home is that of a server that `startTestServer` has started. */
export function isTestHome(home: string): boolean {
  return resolve(dirname(home)) === resolve(tmpdir()) && basename(home).startsWith(TEST_HOME);
}

/**
 * Returns how a program reaches the server that the command uses for the same PERDURE_HOME: the one
 * that the settings, TEMPORAL_ADDRESS, or a profile name; else the running server of `home`; else
 * this user's at 127.0.0.1:7233. Starts none. Throws a `NoServerError` that lists where it looked.
 */
export async function locateTarget(
  settings: ConnectionSettings,
  { env, home }: { readonly env: Environment; readonly home: string },
): Promise<ConnectionTarget> {
  if (namedAddress(settings, env) !== null) return connectionTarget(settings, env);
  // Only a program without a named server must search for one.
  const { findServer } = await import('./dev-server.js');
  const notes: string[] = [];
  const found = await findServer({ home, env, note: (line) => notes.push(line) });
  if (found === null) throw new NoServerError(noneFound(home, { env, notes }));
  const { namespace } = connectionTarget(settings, env);
  // Keys and TLS settings of the environment are for a named server.
  const unnamed = Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_'));
  return connectionTarget({ address: found.address, namespace }, Object.fromEntries(unnamed));
}

function noneFound(
  home: string,
  { env, notes }: { readonly env: Environment; readonly notes: readonly string[] },
): string {
  const atDefault =
    env['PERDURE_SERVER'] === 'own'
      ? `${DEFAULT_ADDRESS} is not used (PERDURE_SERVER=own)`
      : `no usable server of this user answers at ${DEFAULT_ADDRESS}`;
  const tried =
    `TEMPORAL_ADDRESS is not set, no server is running for PERDURE_HOME ${resolve(home)}, and ` +
    atDefault;
  const noted = notes.map((line) => ` ${line}`).join('');
  return (
    `no Temporal server was found: ${tried}. Start one with \`npx perdure dev\`, or name one with ` +
    '`address` or TEMPORAL_ADDRESS. In a test, add: const { address, home } = await startTestServer(); ' +
    `it is in perdure/testing, and createWorker and createClient take address and home.${noted}`
  );
}
