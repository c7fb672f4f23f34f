import { readdir, readFile } from 'node:fs/promises';
import { Client, Connection } from '@temporalio/client';
import { prepareNamespace } from '../../src/server/namespace.js';
import type { Bench } from './bench.js';
import { cpuMsOf, cpuMsWithChildren } from './cpu.js';

/** A Temporal server under load. */
export interface Place {
  /** Prefix of its rows, such as `scale/postgresql`. */
  readonly rows: string;
  /** Its database, for readers. */
  readonly database: string;
  /** The cores to which the database is held; null if it has all of them. */
  readonly databaseCores: number | null;
  readonly client: Client;
  /** Environment with which a worker finds it. */
  readonly env: Readonly<Record<string, string>>;
  /** CPU time of each of its parts since it began. */
  cpuMs(): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

/**
 * The embedded server, whose database is part of its process; or the server at SCALE_ADDRESS, whose
 * process is SCALE_SERVER_PID, with PostgreSQL on the same machine. Throws if only one of the two is
 * given.
 */
export async function openPlace(bench: Bench): Promise<Place> {
  const { SCALE_ADDRESS: address, SCALE_SERVER_PID: pid, SCALE_DATABASE_CORES } = process.env;
  if (address === undefined) {
    return {
      rows: 'scale',
      database: 'embedded server',
      databaseCores: null,
      client: bench.client,
      env: {},
      cpuMs: async () => ({ server: await cpuMsOf(bench.server.pid) }),
      close: () => Promise.resolve(),
    };
  }
  const server = Number(pid);
  if (Number.isNaN(await cpuMsOf(server))) {
    throw new Error(`SCALE_SERVER_PID: expected the process id of the server, got ${pid}`);
  }
  const cores = SCALE_DATABASE_CORES === undefined ? null : Number(SCALE_DATABASE_CORES);
  const connection = await Connection.connect({ address, connectTimeout: '1 minute' });
  await prepareNamespace(connection, 'default');
  return {
    rows: `scale/postgresql${cores === null ? '' : `-${cores}`}`,
    database: cores === null ? 'PostgreSQL' : `PostgreSQL on ${cores} cores`,
    databaseCores: cores,
    client: new Client({ connection }),
    env: { ADDRESS: address },
    cpuMs: async () => ({
      server: await cpuMsOf(server),
      database: await cpuMsWithChildren(await processesNamed('postgres')),
    }),
    close: () => connection.close(),
  };
}

/** Returns the ids of all processes whose program has this name. */
async function processesNamed(name: string): Promise<readonly number[]> {
  const ids = (await readdir('/proc')).map(Number).filter((id) => id > 0);
  const names = await Promise.all(
    ids.map((id) => readFile(`/proc/${id}/comm`, 'utf8').catch(() => '')),
  );
  return ids.filter((_, at) => names[at]?.trim() === name);
}
