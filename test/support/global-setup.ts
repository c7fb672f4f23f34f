import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bundleWorkflows } from '../../src/worker/bundle.js';
import { builtTree } from './built-program.js';
import { testServer } from './temporal-server.js';

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-bundle-'));
  const workflowBundle = join(folder, 'workflow-bundle.js');
  const [server, { code }, built] = await Promise.all([
    testServer(),
    bundleWorkflows(),
    builtTree(),
  ]);
  process.env['PERDURE_TEST_BUILD'] = built;
  await writeFile(workflowBundle, code);
  project.provide('temporalAddress', server.address);
  project.provide('temporalCli', server.cliPath);
  project.provide('workflowBundle', workflowBundle);
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
