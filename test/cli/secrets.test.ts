import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { beforeAll, expect, test } from 'vitest';
import { builtProgram } from '../support/built-program.js';
import { CANARIES, CANARY_NAMES, canariesIn } from '../support/canaries.js';
import { commandLine } from '../support/command.js';

const cli = await commandLine();

/** A configuration that prints the environment in every possible way. */
const LOUD = `
const all = JSON.stringify(process.env);
console.log(all);
console.error(process.env);
console.dir(process.env);
process.stderr.write(all);
`;

/** `CANARY_LISTED` is known only to a configuration that lists it. */
const { CANARY_LISTED, ...env } = CANARIES;

beforeAll(async () => {
  await writeFile(join(cli.folder, 'throws.mjs'), `${LOUD} throw new Error('refused: ' + all);`);
  const agent =
    "defineAgent({ name: 'a', instructions: 'x', model: 'm', description: 'has ' + process.env.CANARY_API_KEY })";
  const names = JSON.stringify([...CANARY_NAMES, 'NOT_SET']);
  const config = `import { defineAgent, defineConfig } from 'perdure';
export default defineConfig({ agents: [${agent}], secrets: ${names}, address: 'nowhere.invalid:' + process.env.CANARY_LISTED });`;
  await writeFile(join(cli.folder, 'listed.mjs'), config);
});

test('no output contains a secret if the configuration prints and throws the environment', async () => {
  for (const command of ['worker', 'doctor']) {
    const args = [command, '--config', 'throws.mjs', '--json'];
    const { code, stdout, stderr } = await cli.start(args, { env }).ended;
    expect(code).not.toBe(0);
    expect([command, canariesIn(stdout), canariesIn(stderr)]).toEqual([command, [], []]);
    expect(stderr).toContain('[redacted CANARY_API_KEY]');
    expect(stdout).toContain('refused: ');
  }
});

test('no message contains a secret that a configuration lists', async () => {
  const { stdout, stderr } = await cli.start(['list', '--config', 'listed.mjs', '--json'], {
    env: { ...env, CANARY_LISTED: CANARY_LISTED ?? '' },
  }).ended;
  expect(canariesIn(stdout + stderr)).toEqual([]);
  expect(stderr).toContain('[redacted CANARY_LISTED]');
});

test('no answer of `mcp` contains a secret', async () => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [await builtProgram(), 'mcp', '--config', 'listed.mjs'],
    cwd: cli.folder,
    env: { ...CANARIES, PATH: process.env['PATH'] ?? '', PERDURE_HOME: join(cli.folder, 'home') },
    stderr: 'ignore',
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  const asked = { name: 'agent_status', arguments: { id: 'none' } };
  const answer = JSON.stringify(await client.callTool(asked));
  const listed = JSON.stringify(await client.callTool({ name: 'agent_list', arguments: {} }));
  await client.close();
  expect(canariesIn(answer + listed)).toEqual([]);
  expect(answer).toContain('[redacted CANARY_LISTED]');
  expect(listed).toContain('[redacted CANARY_API_KEY]');
});
