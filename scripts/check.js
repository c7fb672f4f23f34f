// Runs all static checks at the same time, since most of them use one core, and then the tests.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';

const STATIC_CHECKS = [
  'oxfmt --check',
  'oxlint',
  'tsc -p tsconfig.json',
  'tsc -p tsconfig.workflow.json',
  'knip',
];

/** The compiler and the type-aware linter are Go programs, which collect garbage for a third of their time. */
const GO = { GOGC: 'off', GOMEMLIMIT: '2GiB' };

/** Runs a program of the package, prints its output as one block, and returns whether it succeeded. */
async function succeeds(line) {
  const [program, ...args] = line.split(' ');
  const { error, output } = await new Promise((resolve) => {
    const env = { ...process.env, ...GO };
    execFile(program, args, { env, maxBuffer: 2 ** 26 }, (failure, stdout, stderr) =>
      resolve({ error: failure, output: stdout + stderr }),
    );
  });
  const report = error === null ? '' : `${output}${error.message}\n`;
  process.stdout.write(`> ${line}\n${report}`);
  return error === null;
}

const results = await Promise.all(STATIC_CHECKS.map(succeeds));
if (results.includes(false)) process.exit(1);
const [code] = await once(spawn('vitest', ['run'], { stdio: 'inherit' }), 'exit');
process.exit(code ?? 1);
