import { randomUUID } from 'node:crypto';
import { access, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { commandLine, type RunningCommand } from '../support/command.js';

const address = inject('temporalAddress');
const command = await commandLine();

function configOf(agent: string): string {
  return `import { defineAgent, defineConfig } from 'perdure';
import { instructions } from './prompts/greet.js';
export default defineConfig({ agents: [defineAgent({ name: '${agent}', instructions, model: 'demo' })] });
`;
}

async function devFolder(agent: string): Promise<string> {
  const folder = await mkdtemp(join(command.folder, 'dev-'));
  await mkdir(join(folder, 'prompts'));
  await writeFile(join(folder, 'prompts', 'greet.ts'), `export const instructions = 'greet';\n`);
  await writeFile(join(folder, 'perdure.config.ts'), configOf(agent));
  return folder;
}

function dev(cwd: string): RunningCommand {
  const place = ['--address', address, '--task-queue', `dev-${randomUUID()}`];
  return command.start(['dev', ...place], { cwd });
}

/** Returns the process id of the last worker that `dev` started. */
function workerPid(output: string): number {
  return Number([...output.matchAll(/^Worker (\d+)@/gm)].at(-1)?.[1]);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('dev', () => {
  test('restarts the worker when code changes, waits after an error, and leaves no process behind', async () => {
    const folder = await devFolder('first');
    const running = dev(folder);
    await running.prints(
      'The worker restarts when perdure.config.ts, or a file that it imports, changes',
    );
    await running.prints('with 1 agent: first');
    await writeFile(join(folder, 'notes.ts'), 'export {};\n');
    // Longer than the delay after which a change counts.
    await command.start(['--help']).ended;
    await writeFile(join(folder, 'prompts', 'greet.ts'), 'export const instructions = ;\n');
    await running.prints('prompts/greet.ts has changed.');
    await running.prints('Unexpected token');
    await running.prints('Waiting for a change');
    await writeFile(join(folder, 'prompts', 'greet.ts'), `export const instructions = 'hi';\n`);
    await writeFile(join(folder, 'perdure.config.ts'), configOf('second'));
    await running.prints('perdure.config.ts has changed.');
    await running.prints('with 1 agent: second');
    const second = workerPid(running.stderr());
    // From one worker that runs to another.
    await writeFile(join(folder, 'perdure.config.ts'), configOf('third'));
    await running.prints('with 1 agent: third');
    expect(isAlive(second)).toBe(false);
    running.child.kill('SIGINT');
    const { code, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(stderr).toContain('Temporal UI: http://127.0.0.1:');
    expect(stderr).not.toContain('notes.ts has changed');
    expect(isAlive(workerPid(stderr))).toBe(false);
  });

  test('never loads a configuration that appears while it runs, and notes it; when killed, it ends its worker', async () => {
    const folder = await mkdtemp(join(command.folder, 'dev-'));
    const running = dev(folder);
    await running.prints('with 1 agent: files');
    const first = workerPid(running.stderr());
    // A model could have written this.
    const trap = "import { writeFileSync } from 'node:fs';\nwriteFileSync('executed', '');\n";
    await writeFile(join(folder, 'perdure.config.ts'), `${trap}${configOf('intruder')}`);
    await running.prints('perdure.config.ts has appeared and is not loaded');
    // The next worker does not load it either.
    process.kill(first, 'SIGKILL');
    await running.prints('and restarts');
    await running.prints('with 1 agent: files', 2);
    running.child.kill('SIGKILL');
    // The worker shares the output stream, which closes only when both processes have ended.
    const { stderr } = await running.ended;
    expect(stderr).toContain('The worker stops');
    expect(workerPid(stderr)).not.toBe(first);
    expect(stderr).not.toContain('intruder');
    await expect(access(join(folder, 'executed'))).rejects.toThrow('ENOENT');
  });

  test('has a console of its own beside that of another project', async () => {
    const both: RunningCommand[] = [];
    for (const name of ['one', 'two']) {
      const running = dev(await devFolder(name));
      both.push(running);
      await running.prints('Console: http://127.0.0.1:');
    }
    const urls = both.map((running) => /^Console: (\S+)$/m.exec(running.stderr())?.[1]);
    expect(new Set(urls).size).toBe(2);
    for (const { child } of both) child.kill('SIGINT');
    await Promise.all(both.map(({ ended }) => ended));
  });

  test('takes another port if one that starts at the same time has the usual one, and keeps it', async () => {
    const folder = await devFolder('late');
    const running = dev(folder);
    // It has found the port free, and its worker does not listen yet.
    await running.prints('The worker restarts when');
    const other = createServer().listen(8_788, '127.0.0.1');
    // Another test may have the port; then it was not found free.
    other.once('error', () => undefined);
    onTestFinished(() => void other.close());
    await running.prints('Console: http://127.0.0.1:');
    await writeFile(join(folder, 'prompts', 'greet.ts'), `export const instructions = 'hi';\n`);
    await running.prints('prompts/greet.ts has changed.');
    const urls = () => [...running.stderr().matchAll(/^Console: (\S+)$/gm)].map(([, url]) => url);
    await expect.poll(urls, { timeout: 30_000 }).toHaveLength(2);
    expect(new Set(urls()).size).toBe(1);
    expect(urls()[0]).not.toMatch(/:8788$/);
    expect(running.stderr()).not.toContain('No console');
    running.child.kill('SIGINT');
    await running.ended;
  });
});
