import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Rig } from '../support/rig.js';
import { scheduleCommands } from '../support/schedule-commands.js';

let rig: Rig;
let client: PerdureClient;
let ofFiles: string;
const { created, perdure, perdureWith } = scheduleCommands((desk) => {
  ({ rig, client, ofFiles } = desk);
});

describe('a schedule that sends to a run', () => {
  test('create notes that no run takes the messages', async () => {
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const words = ['schedule', 'create', id, 'hello', '--to', `none-${id}`, '--every', '2h'];
    const { stderr } = await perdure(...words, '--paused');
    expect(stderr).toContain(`--to: there is no run "none-${id}" now; each message fails until`);
    const started = await perdureWith(ofFiles, 'schedule', 'update', id, '--agent', 'files');
    expect(started.stderr).not.toContain('--to: ');
    const other = await perdure('schedule', 'update', id, '--to', `none-${id}-2`);
    expect(other.stderr).toContain('now; the first message starts it, with agent "files".');
  });

  test('create and update note that a run has ended, whose id no run gets again', async () => {
    const to = `ended-${randomUUID()}`;
    await client.start('files', { id: to, message: 'x' });
    await rig.client.workflow.getHandle(to).terminate();
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const note = `--to: run "${to}" has ended and takes no messages, so each one fails. Send to another id with: `;
    const words = ['schedule', 'create', id, 'hello', '--to', to, '--cron', '0 9 1 1 *'];
    const { stderr } = await perdure(...words);
    expect(stderr).toContain(note);
    expect(stderr).toContain(`schedule update ${id} --to ID`);
    expect(stderr).not.toContain('until one is started');
    expect((await perdure('schedule', 'update', id, '--to', to)).stderr).toContain(note);
  });

  test('trigger says that it starts the run, that the run takes none, and nothing of an open one', async () => {
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const to = `fresh-${id}`;
    const words = ['schedule', 'create', id, 'hello', '--to', to, '--agent', 'files'];
    await perdureWith(ofFiles, ...words, '--cron', '0 9 1 1 *');
    const trigger = async (): Promise<string> =>
      (await perdure('schedule', 'trigger', id, '--overlap', 'allow_all')).stderr;
    const sends = `It sends its message to run ${to}. See whether it was sent with: `;
    const first = await trigger();
    expect(first).toContain(sends);
    expect(first).toContain(
      `There is no run "${to}" now; the first message starts it, with agent "files".`,
    );
    await client.start('files', { id: to, open: true });
    const open = await trigger();
    expect(open).toContain(sends);
    expect(open).not.toContain(`run "${to}"`);
    await rig.client.workflow.getHandle(to).terminate();
    expect(await trigger()).toContain(
      `Run "${to}" has ended and takes no messages, so each one fails. Send to another id with: `,
    );
  });

  test('update keeps the recorded name of the sender without the agent', async () => {
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const words = ['schedule', 'create', id, 'hello', '--to', `none-${id}`, '--agent', 'files'];
    await perdureWith(ofFiles, ...words, '--by', 'ann', '--every', '2h', '--paused');
    await perdure('schedule', 'update', id, '--without', 'agent');
    const described = { to: `none-${id}`, agent: null, settings: { by: 'ann' } };
    expect(await client.schedule.describe(id)).toMatchObject(described);
    await perdureWith(ofFiles, 'schedule', 'update', id, '--agent', 'files', '--tag', 'x');
    await expect(perdure('schedule', 'update', id, '--without', 'agent')).rejects.toThrow(
      '--tag: expected only with',
    );
  });
});
