import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { perdureHome } from '../storage/files.js';
import { ensureServer } from './ensure-server.js';
import { stopServer } from './dev-server.js';
import { TEST_HOME } from './locate-target.js';
import { locateHome } from './server-home.js';
import { findTemporalCli } from './temporal-cli.js';

/** An embedded Temporal server for tests, with a PERDURE_HOME of its own. */
export interface TestServer {
  /** The `host:port`, for `createWorker`, `createClient`, or TEMPORAL_ADDRESS. */
  readonly address: string;
  /** The PERDURE_HOME of the server, also for workers and clients. It is deleted by `close`. */
  readonly home: string;
  /** TEMPORAL_ADDRESS and PERDURE_HOME, for the environment of workers, clients, and commands. */
  readonly env: { readonly TEMPORAL_ADDRESS: string; readonly PERDURE_HOME: string };
  /** Ends the server and deletes its data. */
  close(): Promise<void>;
  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a server of its own with a fresh database, on a free port. It writes nothing to the
 * terminal, and ends with this process, however the process ends.
 */
export async function startTestServer(): Promise<TestServer> {
  const home = await mkdtemp(join(tmpdir(), TEST_HOME));
  // The program that was downloaded for the project also serves its tests.
  const { path } = await findTemporalCli(await locateHome(perdureHome(process.env)));
  const env = { ...process.env, TEMPORAL_CLI_PATH: path };
  const options = { home, env, adoptDefault: false, ownerPid: process.pid };
  const { address } = await ensureServer(options).catch(async (error: unknown) => {
    await rm(home, { recursive: true, force: true });
    throw error;
  });
  const close = async (): Promise<void> => {
    await stopServer(home);
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  };
  return {
    address,
    home,
    env: { TEMPORAL_ADDRESS: address, PERDURE_HOME: home },
    close,
    [Symbol.asyncDispose]: close,
  };
}
