import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { commandLine, type CommandEnd } from '../support/command.js';

const address = inject('temporalAddress');
const command = await commandLine();

async function projectFolder(name = 'project'): Promise<string> {
  const folder = join(await mkdtemp(join(command.folder, 'init-')), name);
  await mkdir(folder);
  return folder;
}

const before = process.cwd();
afterEach(() => process.chdir(before));

/** Runs a command in a folder, in this process. */
async function perdure(cwd: string, ...args: readonly string[]): Promise<CommandEnd> {
  process.chdir(cwd);
  return await command.here([...args, '--address', address]).ended;
}

const written = (end: CommandEnd): { taskQueue: string; agent: string } => JSON.parse(end.stdout);

describe('init', () => {
  test('writes a configuration with its own task queue, and never overwrites one', async () => {
    const folder = await projectFolder('Ünïcode  Shop');
    const first = await perdure(folder, 'init', '--json');
    expect(first.code).toBe(0);
    expect(first.stderr).toContain(
      '  npm install perdure zod && npm install --save-dev typescript',
    );
    expect(written(first).taskQueue).toMatch(/^u-ni-code-shop-[0-9a-f]{8}$/);
    const text = await readFile(join(folder, 'perdure.config.ts'), 'utf8');
    const second = await perdure(folder, 'init');
    expect(second.code).toBe(2);
    expect(second.stderr).toContain('a folder without a configuration, got perdure.config.ts');
    expect(await readFile(join(folder, 'perdure.config.ts'), 'utf8')).toBe(text);

    const twin = await projectFolder();
    const listed = '{"name":"@acme/shop","dependencies":{"perdure":"*"}}';
    await writeFile(join(twin, 'package.json'), listed);
    await mkdir(join(twin, '..', 'node_modules', 'zod'), { recursive: true });
    const other = await perdure(twin, 'init', '--json');
    expect(written(other).taskQueue).toMatch(/^acme-shop-[0-9a-f]{8}$/);
    expect(other.stderr).toContain('  npm install --save-dev typescript');
  });

  test('refuses a folder whose package.json cannot be read, before it writes anything', async () => {
    const broken = [
      ['{"name": "shop",\n}', '(line 2 column 1); correct it there, or delete the file'],
      ['{"private": yes}', ": Unexpected token 'y', "],
      ['[]', 'package.json: expected a JSON object, got [];'],
    ] as const;
    for (const [text, problem] of broken) {
      const folder = await projectFolder();
      await writeFile(join(folder, 'package.json'), text);
      const end = await perdure(folder, 'init');
      expect(end.code).toBe(2);
      expect(end.stderr).toContain('error: package.json: expected ');
      expect(end.stderr).toContain(problem);
      expect(await readdir(folder)).toEqual(['package.json']);
    }
    const folder = await projectFolder();
    await mkdir(join(folder, 'package.json'));
    expect((await perdure(folder, 'init')).stderr).toContain('expected a readable file');
    expect(await readdir(folder)).toEqual(['package.json']);
  });

  test('a package.json that breaks later is blamed, and not the configuration', async () => {
    const folder = await projectFolder();
    expect((await perdure(folder, 'init')).code).toBe(0);
    await writeFile(join(folder, 'package.json'), '{bad');
    const problem = 'package.json: expected JSON, got an error: Expected property name or ';
    const run = await perdure(folder, 'run', 'assistant', 'x');
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(`error: ${problem}`)]);
    const doctor = await perdure(folder, 'doctor', '--json');
    expect(JSON.parse(doctor.stdout).findings).toContainEqual(
      expect.objectContaining({
        name: 'configuration',
        text: expect.stringMatching(/^package\.json: /),
        fix: expect.stringMatching(/^correct that file; /),
      }),
    );
    // Also one of a folder above.
    const inner = join(folder, 'inner');
    await mkdir(inner);
    await writeFile(join(inner, 'part.ts'), 'export default [];\n');
    await writeFile(
      join(inner, 'perdure.config.ts'),
      "import agents from './part.js';\nexport default { agents };\n",
    );
    const above = await perdure(inner, 'run', 'assistant', 'x');
    expect(above.stderr).toContain(`error: ../${problem}`);
  });

  test('gives the tests of a project time, unless it has a configuration of vitest', async () => {
    const folder = await projectFolder();
    await writeFile(join(folder, 'package.json'), '{"name":"shop"}');
    const first = await perdure(folder, 'init');
    expect(first.stderr).toContain('test/count-words.test.ts, vitest.config.ts: agent');
    expect(first.stderr).toContain('Set "type": "module" in package.json');
    expect(await readFile(join(folder, 'vitest.config.ts'), 'utf8')).toContain('testTimeout');

    const own = await projectFolder();
    await writeFile(join(own, 'vite.config.mts'), 'export default {};\n');
    const second = await perdure(own, 'init');
    expect(second.code).toBe(0);
    expect(second.stderr).not.toContain('vitest.config.ts');
  });

  test('writes a working configuration, and commands find a run on its queue whatever is configured', async () => {
    const folder = await projectFolder();
    const { taskQueue, agent } = written(await perdure(folder, 'init', '--json'));
    const id = `init-${randomUUID()}`;
    const run = ['run', agent, 'List the files', '--open', '--id', id, '--address', address];
    const started = await command.start(run, { cwd: folder }).ended;
    expect(started.stderr).not.toContain('error');
    expect(started.stdout).toContain('perdure.config.ts');
    const connection = await Connection.connect({ address });
    const described = await new Client({ connection }).workflow.getHandle(id).describe();
    await connection.close();
    expect(described.taskQueue).toBe(taskQueue);

    // The same agents on another queue: a worker for the run serves the run's own queue.
    const other = await projectFolder();
    await cp(join(folder, 'perdure.config.ts'), join(other, 'perdure.config.ts'));
    await cp(join(folder, 'tools'), join(other, 'tools'), { recursive: true });
    const text = await readFile(join(other, 'perdure.config.ts'), 'utf8');
    await writeFile(
      join(other, 'perdure.config.ts'),
      text.replace(taskQueue, `other-${randomUUID()}`),
    );
    const sent = await perdure(other, 'send', id, 'List the files');
    expect(sent.stdout).toContain('perdure.config.ts');
    const status = await perdure(other, 'status', id);
    expect(status.code).toBe(0);
    expect(status.stdout + status.stderr).toContain(taskQueue);
    await perdure(folder, 'close', id);
  });
});
