import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { learnSecrets } from '../secrets/known.js';

export interface ConnectionSettings {
  /** `host:port`; default TEMPORAL_ADDRESS, else the profile's, else 127.0.0.1:7233. */
  readonly address?: string | undefined;
  readonly namespace?: string | undefined;
}

/** How to reach Temporal, read as Temporal's own tools read it: options over environment over profile. */
export interface ConnectionTarget {
  /** Fits both kinds of connection. */
  readonly options: NativeConnectionOptions;
  readonly address: string;
  readonly namespace: string;
}

/** A page of a history may be larger than gRPC's own limit of 4 MiB, which would make the run unreadable. */
export const CHANNEL_OPTIONS = {
  channelArgs: { 'grpc.max_receive_message_length': 128 * 1024 * 1024 },
};

const DEFAULT_ADDRESS = '127.0.0.1:7233';

export function connectionTarget(
  settings: ConnectionSettings,
  env: Readonly<Record<string, string | undefined>> = process.env,
): ConnectionTarget {
  const set = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const { connectionOptions, namespace } = loadClientConnectConfig({
    overrideEnvVars: Object.fromEntries(set),
  });
  const address = settings.address ?? connectionOptions.address ?? DEFAULT_ADDRESS;
  const { apiKey } = connectionOptions;
  // It may stand in a profile, not in the environment.
  if (typeof apiKey === 'string') learnSecrets({ values: [apiKey] });
  return {
    options: { ...connectionOptions, address },
    address,
    namespace: settings.namespace ?? namespace ?? 'default',
  };
}
