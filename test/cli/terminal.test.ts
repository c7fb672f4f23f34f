import { spawn, spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { osUser } from '../../src/cli/input/os-user.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { builtProgram } from '../support/built-program.js';
import { createDesk, type Desk } from '../support/requests.js';

/**
 * Only the `script` of util-linux runs a command in a pseudo-terminal and takes its input from a
 * pipe.
 */
const hasTerminal = spawnSync('script', ['--version']).stdout?.includes('util-linux') ?? false;
if (!hasTerminal) console.warn('skipped: no `script` of util-linux, so no pseudo-terminal');

let desk: Desk;
beforeAll(async () => {
  desk = await createDesk();
});
afterAll(async () => await desk.close());

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ to: z.string() }),
  effect: 'keyed',
  approval: 'always',
  execute: async ({ to }) => {
    desk.did(`pay ${to}`);
    return 'paid';
  },
});

test.skipIf(!hasTerminal)(
  'a person at a terminal is prompted, and decides by typing a word',
  async () => {
    const agent = defineAgent({ name: 'payer', instructions: 'x', model: 'script', tools: [pay] });
    await desk.work([agent]);
    desk.script([{ pay: { to: 'ann' } }, 'Done.']);
    const { handle } = await desk.asked({ agent: 'payer', message: 'pay' });
    const place = ['--address', inject('temporalAddress'), '--task-queue', desk.rig.taskQueue];
    const command = [process.execPath, await builtProgram(), 'attach', handle.workflowId, ...place];
    const terminal = spawn('script', ['-qefc', command.join(' '), '/dev/null'], {
      env: {
        PATH: process.env['PATH'],
        HOME: desk.rig.home,
        PERDURE_HOME: desk.rig.home,
        TERM: 'xterm',
      },
    });
    let shown = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
    const isShown = async (text: string): Promise<void> =>
      await vi.waitFor(() => expect(shown).toContain(text), { timeout: 30_000, interval: 50 });
    await isShown('approve / deny');
    expect(shown).toMatch(/to.*ann/);
    terminal.stdin.write('nonsense\r');
    await isShown('Type one of: approve / deny');
    terminal.stdin.write('approve\r');
    await isShown('is decided as approve');
    const { outcome, projection } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.' });
    expect(desk.done).toEqual(['pay ann']);
    expect(projection.state?.decisions).toMatchObject([{ as: 'approve', by: osUser() }]);
    terminal.stdin.end();
    terminal.kill();
  },
);
