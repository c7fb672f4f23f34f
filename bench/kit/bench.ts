import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode } from '@temporalio/worker';
import { ensureServer } from '../../src/server/ensure-server.js';
import type { ServerHandle } from '../../src/server/server-settings.js';
import { stopServer } from '../../src/server/dev-server.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { bundleWorkflows } from '../../src/worker/bundle.js';
import { stubAnswer } from '../subject/models.js';
import { startChild, type Child, type ChildOptions } from './child.js';

/** What every row uses: one server, one stub, and the workflow code of both sides. */
export interface Bench {
  readonly client: Client;
  readonly server: ServerHandle;
  /** Answers every conversation that `openingMessage` opens. */
  readonly stub: Stub;
  /** Fewer repeats: shows that the bench works, not how fast perdure is. */
  readonly quick: boolean;
  /** A folder that is deleted at the end. */
  readonly home: string;
  /** Paths of the files with the workflow code. */
  readonly bundles: Readonly<Record<WorkerKind, string>>;
  /** Starts a worker of a side, or another module, on a new queue or on the one that `env` names. */
  worker(
    kind: WorkerKind | URL,
    env?: Readonly<Record<string, string>>,
    options?: Pick<ChildOptions, 'collects'>,
  ): Promise<BenchWorker>;
  close(): Promise<void>;
}

export type WorkerKind = 'perdure' | 'bare';

export interface BenchWorker extends Child {
  readonly queue: string;
}

const SCRIPTS: Readonly<Record<WorkerKind, URL>> = {
  perdure: new URL('../subject/worker.ts', import.meta.url),
  bare: new URL('../bare/worker.ts', import.meta.url),
};

export interface BenchOptions {
  readonly quick: boolean;
  /** Folder for CPU profiles of the workers. */
  readonly profileFolder?: string | undefined;
}

export async function createBench({ quick, profileFolder }: BenchOptions): Promise<Bench> {
  const home = await mkdtemp(join(tmpdir(), 'perdure-bench-'));
  const leave = async (): Promise<void> => {
    await stopServer(home);
    await rm(home, { recursive: true, force: true });
  };
  const own = { home, adoptDefault: false, ownerPid: process.pid };
  const server = await ensureServer(own).catch(async (error: unknown) => {
    await leave();
    throw error;
  });
  const stub = await startStub({ keep: 1 });
  stub.fallback(stubAnswer);
  // A page of a history of the libraries that are compared may be larger than the default of 4 MB.
  const channelArgs = { 'grpc.max_receive_message_length': -1 };
  const connection = await Connection.connect({ address: server.address, channelArgs });
  const bundles: Readonly<Record<WorkerKind, string>> = {
    perdure: await written(join(home, 'perdure-workflows.js'), bundleWorkflows()),
    bare: await written(join(home, 'bare-workflows.js'), bundleBare()),
  };
  let queues = 0;
  const children: Child[] = [];
  return {
    client: new Client({ connection }),
    server,
    stub,
    quick,
    home,
    bundles,
    async worker(kind, env = {}, options = {}) {
      queues += 1;
      const isOther = kind instanceof URL;
      const queue = env['QUEUE'] ?? `${isOther ? 'other' : kind}-${queues}`;
      const child = await startChild(isOther ? kind : SCRIPTS[kind], {
        ...options,
        profileFolder,
        env: {
          ADDRESS: server.address,
          ...(!isOther && { BUNDLE: bundles[kind] }),
          OPENAI_BASE_URL: stub.baseUrl,
          PERDURE_HOME: home,
          QUEUE: queue,
          ...env,
        },
      });
      children.push(child);
      return { ...child, queue };
    },
    async close() {
      await Promise.all(children.map((child) => child.kill()));
      await stub.close();
      await connection.close();
      await leave();
    },
  };
}

async function written(path: string, bundle: Promise<{ readonly code: string }>): Promise<string> {
  await writeFile(path, (await bundle).code);
  return path;
}

const ignore = (): void => undefined;

async function bundleBare(): Promise<{ readonly code: string }> {
  return await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../bare/workflow.ts', import.meta.url)),
    logger: {
      log: ignore,
      trace: ignore,
      debug: ignore,
      info: ignore,
      warn: ignore,
      error: ignore,
    },
  });
}
