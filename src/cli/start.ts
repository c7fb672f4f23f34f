import { guardOutput } from './guard-output.js';
import { main } from './main.js';

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
