import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { InputError } from '../core/errors.js';
import { show } from '../core/text/text.js';
import { learnSecrets } from '../secrets/known.js';

/** Which server, and which of its namespaces. */
export interface ConnectionSettings {
  /**
   * `host:port`; default: that of the configuration, else TEMPORAL_ADDRESS, else the profile's, else the
   * running server of PERDURE_HOME, else this user's at 127.0.0.1:7233.
   */
  readonly address?: string | undefined;
  /** Default: that of the configuration, else TEMPORAL_NAMESPACE, else the profile's, else `default`. */
  readonly namespace?: string | undefined;
}

/** How to reach Temporal, found as its own tools do: options, then environment, then profile. */
export interface ConnectionTarget {
  /** Options for the connections of clients and of workers. */
  readonly options: NativeConnectionOptions;
  readonly address: string;
  readonly namespace: string;
}

export const DEFAULT_ADDRESS = '127.0.0.1:7233';

type Environment = Readonly<Record<string, string | undefined>>;

const ADDRESS = /^(\[[\da-f:.]+\]|[\w.-]+):(\d{1,5})$/i;
const MAX_PORT = 65_535;

/** Returns what is wrong with the form of an address; returns null for `host:port`. */
export function addressProblem(address: string): string | null {
  const [, , port] = ADDRESS.exec(address) ?? [];
  if (port !== undefined && Number(port) > 0 && Number(port) <= MAX_PORT) return null;
  return `address: expected host:port, got ${show(address)}; write for example ${DEFAULT_ADDRESS}`;
}

/**
 * Returns the address that the settings, the environment, or a profile name; null if none does.
 * Throws an `InputError` if the settings have one that is not `host:port`.
 */
export function namedAddress(settings: ConnectionSettings, env: Environment): string | null {
  const problem = settings.address === undefined ? null : addressProblem(settings.address);
  if (problem !== null) throw new InputError(problem);
  return settings.address ?? loadConfig(env).connectionOptions.address ?? null;
}

function loadConfig(env: Environment): ReturnType<typeof loadClientConnectConfig> {
  const set = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return loadClientConnectConfig({ overrideEnvVars: Object.fromEntries(set) });
}

export function connectionTarget(
  settings: ConnectionSettings,
  env: Environment = process.env,
): ConnectionTarget {
  const { connectionOptions, namespace } = loadConfig(env);
  const address = settings.address ?? connectionOptions.address ?? DEFAULT_ADDRESS;
  const { apiKey } = connectionOptions;
  // The key may come from a profile, not from the environment.
  if (typeof apiKey === 'string') learnSecrets({ values: [apiKey] });
  return {
    options: { ...connectionOptions, address },
    address,
    namespace: settings.namespace ?? namespace ?? 'default',
  };
}
