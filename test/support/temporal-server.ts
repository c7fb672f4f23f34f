import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureServer } from '../../src/server/ensure-server.js';
import { locateHome } from '../../src/server/server-home.js';
import { stopServer } from '../../src/server/dev-server.js';
import { findTemporalCli } from '../../src/server/temporal-cli.js';

export interface TestServer {
  /** `host:port` of a fresh embedded server. */
  readonly address: string;
  /** Path of the Temporal CLI. */
  readonly cliPath: string;
  /** Ends the server and deletes its state. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts a separate embedded server, as the product does, in a fresh folder. It ends with this
 * process, even if the process crashes. `settings`: dynamic configuration, as `name=value`.
 */
export async function testServer(settings: readonly string[] = []): Promise<TestServer> {
  const home = await mkdtemp(join(tmpdir(), 'perdure-test-'));
  const { path } = await findTemporalCli(await locateHome(home));
  const env = {
    ...process.env,
    TEMPORAL_CLI_PATH: await wrapped(path, { folder: home, settings }),
  };
  const server = await ensureServer({ home, env, adoptDefault: false, ownerPid: process.pid });
  return {
    address: server.address,
    cliPath: path,
    stop: async () => {
      await stopServer(home);
      await rm(home, { recursive: true, force: true });
    },
  };
}

/**
 * Writes a program that becomes the CLI, with garbage collection only from 1.5 GB on instead of at
 * each doubling of the live heap, since memory is available. Returns its path.
 */
async function wrapped(
  cli: string,
  { folder, settings }: { readonly folder: string; readonly settings: readonly string[] },
): Promise<string> {
  const path = join(folder, 'temporal');
  const flags = settings.map((setting) => `--dynamic-config-value '${setting}'`).join(' ');
  const script = `#!/bin/sh
[ "$1" = server ] && set -- "$@" ${flags}
GOGC=off GOMEMLIMIT=1500MiB exec '${cli}' "$@"
`;
  await writeFile(path, script, { mode: 0o700 });
  return path;
}
