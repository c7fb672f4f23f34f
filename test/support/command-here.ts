import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { main } from '../../src/cli/main.js';
import type { ExitCode } from '../../src/cli/exit-codes.js';

/** The output so far of a command in this process. Emits `text` for each write. */
export class Output extends EventEmitter<{ text: [] }> {
  stdout = '';
  stderr = '';
}

const outputs = new AsyncLocalStorage<Output>();
let isRouting = false;

/**
 * Runs the program with a command line in this process, and returns the exit code. A separate
 * process would load the program, and the workflow thread of its worker, again: one or two seconds
 * of CPU time. Its current folder is that of the tests, and it cannot be interrupted.
 */
export async function runHere(
  args: readonly string[],
  { env, output }: { readonly env: NodeJS.ProcessEnv; readonly output: Output },
): Promise<ExitCode> {
  routeWrites();
  try {
    return await outputs.run(output, () => main(args, env));
  } finally {
    releaseInterrupts();
  }
}

/** Redirects the writes of a command to its output; all other writes pass through. */
function routeWrites(): void {
  if (isRouting) return;
  isRouting = true;
  for (const name of ['stdout', 'stderr'] as const) {
    const write = process[name].write.bind(process[name]);
    process[name].write = (chunk: string | Uint8Array, ...rest: []): boolean => {
      const output = outputs.getStore();
      if (output === undefined) return write(chunk, ...rest);
      output[name] += String(chunk);
      output.emit('text');
      return true;
    };
  }
}

/** A program exits after its command and does not remove its listeners; this process continues. */
function releaseInterrupts(): void {
  for (const event of ['SIGINT', 'SIGTERM', 'disconnect']) {
    for (const listener of process.listeners(event as NodeJS.Signals)) {
      if (listener.name === 'onInterrupt') process.off(event, listener);
    }
  }
}
