import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { builtTree } from './built-program.js';
import { testServer } from './temporal-server.js';

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [server, built] = await Promise.all([testServer(), builtTree()]);
  process.env['PERDURE_TEST_BUILD'] = built;
  project.provide('temporalAddress', server.address);
  project.provide('temporalCli', server.cliPath);
  // The build has already bundled the workflow code of the sources.
  project.provide('workflowBundle', join(built, 'dist', 'workflow-bundle.js'));
  return async () => await server.stop();
}
