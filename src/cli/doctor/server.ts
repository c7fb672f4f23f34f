import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { Config } from '../../config.js';
import { findServer } from '../../server/locate-server.js';
import { messageOf } from '../../server/server-error.js';
import type { ServerHandle } from '../../server/server-handle.js';
import { addressProblem } from '../../temporal/connection.js';
import type { CliContext } from '../context.js';
import type { Finding } from './finding.js';

export interface FoundServer {
  readonly finding: Finding;
  readonly server: ServerHandle | null;
  /** Whether the embedded server is, or would be, in use. */
  readonly embedded: boolean;
}

/** Finds the server that a command would use. Starts none. */
export async function findServerInUse(context: CliContext, config: Config): Promise<FoundServer> {
  const name = 'server';
  let named: Named = { address: null, namespace: null, by: null };
  try {
    named = namedServer(context, config);
    const { home, env } = context;
    const { address, namespace, by } = named;
    const problem = by?.startsWith('TEMPORAL') ? null : address && addressProblem(address);
    if (problem) throw new Error(problem);
    const notes: string[] = [];
    const server = await findServer({
      home,
      env,
      note: (line) => notes.push(line),
      ...(address !== null && { address }),
      ...(namespace !== null && { namespace }),
    });
    if (server === null) return { finding: absent(home, notes), server, embedded: true };
    const finding = {
      name,
      level: 'ok',
      text: describe(server, by),
      data: { ...server, by },
    } as const;
    return { finding, server, embedded: server.pid !== null };
  } catch (error) {
    const { address, by } = named;
    return {
      finding: { name, level: 'problem', text: messageOf(error), data: { address, by } },
      server: null,
      embedded: false,
    };
  }
}

interface Named {
  readonly address: string | null;
  readonly namespace: string | null;
  /** The option, file, or variable that sets the address. */
  readonly by: string | null;
}

/**
 * Reads address and namespace in the commands' order: options, configuration, environment, profile.
 */
function namedServer({ options, env }: CliContext, config: Config): Named {
  const variables = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const { connectionOptions, namespace } = loadClientConnectConfig({
    overrideEnvVars: Object.fromEntries(variables),
  });
  const sources = [
    ['--address', options.address],
    ['the configuration', config.address],
    [
      env['TEMPORAL_ADDRESS'] ? 'TEMPORAL_ADDRESS' : "Temporal's profile",
      connectionOptions.address,
    ],
  ] as const;
  const [by, address] = sources.find(([, value]) => value) ?? [null, null];
  return {
    address: address ?? null,
    namespace: options.namespace ?? config.namespace ?? namespace ?? null,
    by,
  };
}

function absent(home: string, notes: readonly string[]): Finding {
  const none = `none is running; \`run\`, \`dev\`, and \`worker\` start the embedded one in ${home}`;
  const text = [none, ...notes].join('\n');
  const level = notes.length > 0 ? 'note' : 'ok';
  return { name: 'server', level, text, data: { address: null, by: null, notes: [...notes] } };
}

function describe(
  { address, version, uiUrl, pid, home, how }: ServerHandle,
  by: string | null,
): string {
  const origin =
    how === 'address'
      ? `named by ${by ?? 'the caller'}`
      : pid === null
        ? 'found at the default port'
        : `embedded in ${home}, process ${pid}`;
  const parts = [address, origin, `Temporal ${version ?? 'of unknown version'}`];
  return [...parts, ...(uiUrl === null ? [] : [`UI ${uiUrl}`])].join(', ');
}
