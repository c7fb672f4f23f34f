import { once } from 'node:events';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { hostWorker } from '../hosting.js';
import { catchInterrupt } from '../interrupt.js';
import { watchEventLoop } from '../event-loop.js';
import { noteServer } from '../note-server.js';
import { count } from '../words.js';

export interface WorkerCommandOptions {
  readonly maxCached?: number;
}

export const worker: Command<WorkerCommandOptions> = async (context, { maxCached }) => {
  if (maxCached !== undefined && !(Number.isInteger(maxCached) && maxCached >= 0)) {
    throw new UsageError(`--max-cached ${maxCached}: give a whole number from 0`);
  }
  const signal = catchInterrupt();
  const server = await context.server();
  noteServer(context, server);
  const running = await hostWorker(context, {
    taskQueue: await context.taskQueue(),
    showLog: true,
    ...(maxCached !== undefined && { maxCachedWorkflows: maxCached }),
  });
  const { identity, taskQueue } = running;
  const { address, namespace, uiUrl } = server;
  const agents = (await context.config()).agents.map(({ name }) => name);
  const place = `task queue "${taskQueue}" of ${address}, namespace "${namespace}"`;
  const ui = uiUrl === null ? '' : `; Temporal UI: ${uiUrl}`;
  context.say(
    `Worker ${identity} on ${place}, with ${count(agents.length, 'agent')}: ${agents.join(', ')}${ui}`,
  );
  if (context.options.json) {
    context.out(JSON.stringify({ identity, taskQueue, address, namespace, agents }));
  }
  const unwatch = watchEventLoop(context.say);
  try {
    if (!signal.aborted) {
      await Promise.race([running.stopped, once(signal, 'abort')]);
    }
    context.say('The worker stops; what it has not ended is left to another one.');
    await running.shutdown();
    return EXIT.completed;
  } finally {
    unwatch();
  }
};
