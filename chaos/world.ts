import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildPackage } from '../bench/start/build.js';
import { ensureServer } from '../src/server/ensure-server.js';
import { stopServer } from '../src/server/dev-server.js';
import { startStub, type Stub } from '../src/testing/stub-server.js';
import type { Fault } from '../src/memory/faults.js';
import { bundleWorkflows } from '../src/worker/bundle.js';
import { startProxy, type Proxy } from '../test/support/proxy.js';
import { startLedger, type Ledger } from './ledger.js';

export const QUEUE = 'chaos';
const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url));
const SHIFT_CLOCK = new URL('../test/support/shift-clock.js', import.meta.url).href;
/** By how much the clocks of the workers jump. */
const CLOCK_STEP_MS = 86_400_000;
const WORKERS = 3;

/**
 * The real parts of the run: a server with a database file, worker processes, a model, and a
 * ledger.
 */
export interface World {
  /** The address of the server itself. */
  readonly address: string;
  /** What the client and each worker reach the server through. */
  readonly links: { readonly client: Proxy; readonly workers: readonly Proxy[] };
  /** PERDURE_HOME of the workers: the server's database, blobs, and archive. */
  readonly home: string;
  readonly workflowBundle: string;
  readonly stub: Stub;
  readonly ledger: Ledger;
  readonly workers: readonly WorkerSlot[];
  /** Kills the server with SIGKILL and restarts it on the same file. */
  killServer(): Promise<void>;
  /** `keep`: the folder, with the server's database, is not deleted. */
  close(options: { readonly keep: boolean }): Promise<void>;
}

/** A slot for a worker process, which is refilled after each kill. */
export interface WorkerSlot {
  readonly log: readonly string[];
  /** How polling processes have ended, other than by `kill`. */
  readonly deaths: readonly string[];
  /** How many of its processes have died at a place of their faults. */
  readonly faultKills: number;
  /** Whether its process polls, or has polled and is frozen. */
  readonly isUp: boolean;
  kill(): Promise<void>;
  /**
   * Resolves when a process polls. A start while the server is down fails, and is retried, unless it
   * `mustSucceed`: before the first fault, it fails only if the worker is broken.
   */
  start(options?: { readonly mustSucceed?: boolean }): Promise<void>;
  /** With SIGUSR2, the clock of its process jumps by a day. */
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGUSR2'): void;
}

/** `faultsOf`: where the next process of a worker dies, in the form of `runInMemory`. */
export async function createWorld(
  env: Readonly<Record<string, string>>,
  faultsOf: () => readonly Fault[],
): Promise<World> {
  const home = await mkdtemp(join(tmpdir(), 'perdure-chaos-'));
  const options = { home, adoptDefault: false, ownerPid: process.pid };
  const server = await ensureServer(options);
  // Plans are scripted in the form of servers that do not enforce schemas.
  const stub = await startStub({ keep: 1, enforces: false });
  const ledger = await startLedger();
  const workflowBundle = join(home, 'workflows.js');
  await writeFile(workflowBundle, (await bundleWorkflows()).code);
  const built = await buildPackage(home, workflowBundle);
  const [client, ...links] = await Promise.all(
    Array.from({ length: WORKERS + 1 }, () => startProxy(server.address)),
  );
  if (client === undefined) throw new Error('there is no link for the client');
  const slots = links.map((link) =>
    workerSlot(faultsOf, {
      ...env,
      PATH: process.env['PATH'] ?? '',
      PACKAGE: built,
      ADDRESS: link.address,
      CLOCK_SHIFT_MS: String(CLOCK_STEP_MS),
      CLOCK_STARTS: 'right',
      QUEUE,
      BUNDLE: workflowBundle,
      LEDGER: ledger.url,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
      SEGMENT_STEPS: '8',
    }),
  );
  await Promise.all(slots.map((slot) => slot.start({ mustSucceed: true })));
  let pid = server.pid;
  return {
    address: server.address,
    links: { client, workers: links },
    home,
    workflowBundle,
    stub,
    ledger,
    workers: slots,
    async killServer() {
      if (pid !== null) process.kill(pid, 'SIGKILL');
      const again = await ensureServer(options);
      if (again.address !== server.address) throw new Error(`the server moved to ${again.address}`);
      pid = again.pid;
    },
    async close({ keep }) {
      await Promise.all(slots.map((slot) => slot.kill()));
      await Promise.all([client, ...links].map((link) => link.close()));
      await Promise.all([stub.close(), ledger.close(), stopServer(home)]);
      if (!keep) await rm(home, { recursive: true, force: true });
    },
  };
}

function workerSlot(faultsOf: () => readonly Fault[], env: NodeJS.ProcessEnv): WorkerSlot {
  const log: string[] = [];
  const deaths: string[] = [];
  let child: ChildProcess | null = null;
  let isUp = false;
  let isWanted = false;
  let faultKills = 0;
  let hasPolled = false;
  /** Returns whether no further start is needed. */
  const startOnce = async (): Promise<boolean> => {
    const faults = faultsOf();
    const started = fork(WORKER, {
      env: { ...env, FAULTS: JSON.stringify(faults) },
      execArgv: ['--import', SHIFT_CLOCK],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    child = started;
    for (const stream of [started.stdout, started.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => void log.push(text));
    }
    started.once('message', () => void (isUp = true));
    started.once('exit', (code, signal) => {
      const wasLost = isUp && isWanted;
      isUp = false;
      if (!wasLost) return;
      if (signal === 'SIGKILL' && faults.length > 0) {
        faultKills += 1;
        void slot.start();
      } else deaths.push(`code ${code}, signal ${signal}\n${log.slice(-5).join('')}`);
    });
    await Promise.race([once(started, 'message'), once(started, 'exit')]);
    hasPolled ||= isUp;
    // The server is up at the first start, so the program itself is wrong.
    if (!hasPolled && isWanted) throw new Error(`a worker did not start:\n${log.join('')}`);
    return isUp || !isWanted;
  };
  const slot: WorkerSlot = {
    log,
    deaths,
    get faultKills() {
      return faultKills;
    },
    get isUp() {
      return isUp;
    },
    async start({ mustSucceed = false } = {}) {
      isWanted = true;
      while (!(await startOnce())) {
        if (mustSucceed) throw new Error(`a worker did not start:\n${log.join('')}`);
      }
    },
    async kill() {
      isWanted = false;
      const dying = child;
      if (dying === null || dying.exitCode !== null || dying.signalCode !== null) return;
      const gone = once(dying, 'exit');
      dying.kill('SIGKILL');
      await gone;
    },
    signal: (name) => void child?.kill(name),
  };
  return slot;
}
