import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { main } from '../../src/cli/main.js';
import type { ExitCode } from '../../src/cli/context.js';

/** What a command of this process has written so far. Emits `text` for each write. */
export class Output extends EventEmitter<{ text: []; interrupt: [] }> {
  stdout = '';
  stderr = '';
}

const outputs = new AsyncLocalStorage<Output>();
let [isRouting, isRoutingInterrupts] = [false, false];

/**
 * Runs the program with a command line in this process, and returns the exit code. A process of its own would
 * load the program, and the workflow thread of its worker, anew: one or two seconds of CPU time. Its
 * current folder is that of the tests. It is interrupted by the event `interrupt` of its output.
 */
export async function runHere(
  args: readonly string[],
  { env, output }: { readonly env: NodeJS.ProcessEnv; readonly output: Output },
): Promise<ExitCode> {
  routeWrites();
  routeInterrupts();
  return await outputs.run(output, () => main(args, env));
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

/** Leads the listener that a command adds for interrupts to its output: this process is not interrupted. */
function routeInterrupts(): void {
  if (isRoutingInterrupts) return;
  isRoutingInterrupts = true;
  const on = process.on.bind(process) as (event: string, listener: () => void) => NodeJS.Process;
  const routed = (event: string, listener: () => void): NodeJS.Process => {
    const output = outputs.getStore();
    if (output === undefined || listener.name !== 'onInterrupt') return on(event, listener);
    if (event === 'SIGINT') output.on('interrupt', listener);
    return process;
  };
  process.on = routed as typeof process.on;
}
