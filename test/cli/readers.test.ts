import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { stopServer } from '../../src/server/dev-server.js';
import { commandLine, type CommandEnd } from '../support/command.js';

const command = await commandLine();
/** The process id of the embedded server. */
const home = join(command.folder, 'home');

afterAll(async () => await stopServer(home));

async function perdure(...args: readonly string[]): Promise<CommandEnd> {
  return await command.here(args).ended;
}

describe('the reading commands in a new folder', () => {
  test('list starts the embedded server and prints no runs; doctor then shows the server', async () => {
    const listed = await command.start(['list', '--json']).ended;
    expect(listed).toMatchObject({ code: 0, stdout: '{"rows":[],"cursor":null}\n' });
    expect(listed.stderr).toMatch(
      /^Started a Temporal server for .*home, a new home without runs\. .* kill \d+$/m,
    );
    // No run needs a worker, so the missing one is not mentioned.
    expect(listed.stderr).not.toContain('worker');
    const { code, stdout } = await perdure('doctor');
    expect(stdout).toMatch(/^ok +server +127.* embedded in .*home, process \d+, Temporal/m);
    expect(stdout).toMatch(/^ok +temporal cli +\S+temporal.* \(source: .*\), version/m);
    expect(stdout).toMatch(/^ok +worker +none polls task queue "perdure"/m);
    expect(stdout).toMatch(/^ok +home +.*home: database [\d.]+ [kM]?B, blobs can be written$/m);
    expect(code).toBe(0);
  });

  test('an unknown run exits with code 1, also with --json, and names the command that lists runs', async () => {
    const { code, stdout, stderr } = await perdure('status', 'nobody', '--json');
    expect(JSON.parse(stdout)).toEqual({
      code: 'no_run',
      error: expect.stringMatching(/^there is no run "nobody"; list runs with: .* list$/),
    });
    expect(stderr).toMatch(/^error: there is no run "nobody"/m);
    expect(code).toBe(1);
  });

  test.each([
    [['transcript', 'x', '--from', 'two'], '--from'],
    [['resolve', 'x', 'call_1_1_0'], '--as'],
    [['resolve', 'x', 'call_1_1_0', '--as', 'perhaps'], 'happened, retry, abandon'],
    [['resolve', 'x', 'call_1_1_0', '--as', 'happened', '--result', '{'], 'Expected JSON'],
  ])('%j is refused as usage', async (args, reason) => {
    const { code, stdout, stderr } = await command.here(args).ended;
    expect(stderr).toContain(reason);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  test('a server that starts again in the same home is not called new', async () => {
    await stopServer(home);
    const { stderr } = await perdure('list');
    expect(stderr).toMatch(/^Started a Temporal server for .*home\. It stays up/m);
  });

  test('without a server the exit code is 5', async () => {
    const { code, stderr } = await perdure('status', 'x', '--address', '127.0.0.1:1');
    expect(stderr).toContain('No Temporal server answers at 127.0.0.1:1');
    expect(code).toBe(5);
  });
});
