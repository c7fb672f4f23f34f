import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isObject } from '../../src/core/text/json.js';
import type { Bench } from '../kit/bench.js';
import type { Row } from '../row.js';
import { buildPackage } from '../start/build.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const SCRIPT = fileURLToPath(new URL('../start/ready-child.js', import.meta.url));

/**
 * Measures the time from the start of a process until its worker polls, with the package as
 * installed.
 */
export async function measureWorkerStart(bench: Bench): Promise<readonly Row[]> {
  const built = await buildPackage(bench.home, bench.bundles.perdure);
  const starts: { readonly readyMs: number; readonly createMs: number }[] = [];
  await startOnce(bench, built);
  for (let repeat = 0; repeat < (bench.quick ? 2 : 8); repeat += 1) {
    starts.push(await startOnce(bench, built));
  }
  const samples = starts.map(({ readyMs }) => readyMs);
  const create = median(starts.map(({ createMs }) => createMs));
  return [
    {
      name: 'worker-start',
      what: 'worker from the start of its process to ready',
      value: median(samples),
      unit: 'ms',
      bar: { atMost: 1_500 },
      samples,
      detail: `of them createWorker ${show(create)} ms, connecting included`,
    },
  ];
}

async function startOnce(
  { server, home }: Bench,
  built: string,
): Promise<{ readyMs: number; createMs: number }> {
  const begun = performance.now();
  const child = fork(SCRIPT, {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: {
      PATH: process.env['PATH'],
      PACKAGE_DOOR: pathToFileURL(join(built, 'index.js')).href,
      ADDRESS: server.address,
      QUEUE: 'start',
      PERDURE_HOME: home,
    },
  });
  const gone = once(child, 'exit');
  const stderrText = child.stderr === null ? '' : readText(child.stderr);
  const message = await Promise.race([firstMessage(child), gone]);
  const readyMs = performance.now() - begun;
  if (!isObject(message))
    throw new Error(`the worker ended before it was ready: ${await stderrText}`);
  child.kill('SIGKILL');
  await gone;
  return { readyMs, createMs: Number(message['createMs']) };
}

function firstMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => child.once('message', resolve));
}
