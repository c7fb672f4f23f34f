import type { TestProject } from 'vitest/node';
import { testServer } from './temporal-server.js';

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await testServer();
  project.provide('temporalAddress', server.address);
  project.provide('temporalCli', server.cliPath);
  return server.stop;
}
