import { main } from './main.js';
import { format, inspect } from 'node:util';
import { redact } from '../secrets/redact.js';

/** Runs the program as this process. It ends even if something is left open. */
export async function start(): Promise<void> {
  // Whoever reads our output may leave early, as `head` does.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => process.exit());
  }
  guardOutput();
  const code = await main(process.argv.slice(2), process.env);
  process.exitCode = code;
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}

/** The methods of the console by which tools of a worker in this process write to its output. */
const METHODS = ['log', 'info', 'debug', 'warn', 'error', 'trace'] as const;

/**
 * Redacts what this process writes to standard error, and what tools and agents write to its console.
 * Standard output is data that somebody asked for, such as an exported history, and remains as it is.
 */
function guardOutput(): void {
  const write = process.stderr.write.bind(process.stderr);
  const guarded = (chunk: string | Uint8Array, ...rest: []): boolean =>
    write(typeof chunk === 'string' ? redact(chunk) : chunk, ...rest);
  process.stderr.write = guarded;
  for (const method of METHODS) {
    const original = console[method].bind(console);
    console[method] = (...said: unknown[]) => original('%s', redact(format(...said)));
  }
  const log = console.log;
  console.dir = (value: unknown, options?: object) => log('%s', inspect(value, options));
}
