import { inspect } from 'node:util';
import { afterAll, afterEach } from 'vitest';
import { setWorkflowCode } from '../../src/worker/bundle.js';
import { installRuntime } from '../../src/worker/log.js';
import { sourceBundle } from './bundle.js';
import { CANARIES } from './canaries.js';
import { expectKeptReplays } from './replays.js';
import { expectReadersAgree } from './watched-runs.js';
import { shareChannelOptions } from './connections.js';
import { expectNoLeaks, watchLog, watchWorkers } from './canary-watch.js';
import { reuseWorkflowThreads } from './workflow-threads.js';

// Every test of workers and servers has secrets in its environment, and fails when one leaks.
Object.assign(process.env, CANARIES);
watchWorkers();
// A connection that is closed during a repeated call would end the process.
shareChannelOptions();
reuseWorkflowThreads();
// Bundling takes five seconds of CPU time, in each process whose tests run a command that hosts a worker.
setWorkflowCode(await sourceBundle());
installRuntime('INFO', {
  write: (entry) => {
    watchLog(entry);
    if (entry.level === 'ERROR') {
      process.stderr.write(`[${entry.level}] ${entry.message} ${inspect(entry.meta)}\n`);
    }
  },
});
// A failed test needs no further report, and its runs may be stuck.
afterEach(async ({ task }) => {
  if (task.result?.state !== 'fail') await expectReadersAgree();
});
afterEach(() => expectNoLeaks());
afterAll(() => expectKeptReplays());
