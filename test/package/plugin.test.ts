import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { freshProject, NoRegistryError, type FreshProject } from '../support/packed-package.js';

const sources = fileURLToPath(new URL('./own-worker', import.meta.url));
const address = inject('temporalAddress');
let project: FreshProject | null = null;
let missing = '';

beforeAll(async () => {
  project = await freshProject(sources).catch((error: unknown) => {
    if (!(error instanceof NoRegistryError)) throw error;
    missing = error.message;
    return null;
  });
});
afterAll(async () => {
  if (project !== null) await rm(project.folder, { recursive: true, force: true });
});

test('a fresh project adds agents to a worker of its own: types, workflows, a run and its replay', async ({
  skip,
}) => {
  if (project === null) return skip(missing);
  const queue = `own-${randomUUID()}`;
  expect(await project.compile()).toEqual([]);
  const told = JSON.parse(await project.run('node', 'dist/main.js', address, queue));
  expect(told.outcome).toMatchObject({
    status: 'completed',
    answer: 'It is 42.',
    steps: 2,
    toolCalls: 1,
  });
  expect(told.greeting).toBe('HELLO YOU');
  // The project's own workflows keep their stack traces.
  expect(told.stack).toContain('workflows');

  const history = await project.run('perdure', 'export', `${queue}-agent`, '--address', address);
  await writeFile(join(project.folder, 'run.json'), history);
  expect(await project.run('perdure', 'replay', 'run.json')).toMatch(
    /^ok +run\.json · \d+ events\n$/,
  );
});
