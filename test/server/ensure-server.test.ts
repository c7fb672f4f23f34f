import { existsSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { describe, expect, test } from 'vitest';
import { ensureServer } from '../../src/server/ensure-server.js';
import { findServer } from '../../src/server/locate-server.js';
import { missingSearchAttributes, retentionHours } from '../../src/server/namespace.js';
import { stopServer } from '../../src/server/locate-server.js';
import { serverHomes } from '../support/server-homes.js';

const { freshHome, client } = serverHomes();
const agentName = defineSearchAttributeKey('AgentName', SearchAttributeType.KEYWORD);

/** In seconds, as the server sets it for a run that does not set one. */
async function workflowTaskTimeout(address: string): Promise<number> {
  const { workflow } = await client(address);
  const run = await workflow.start('anything', { taskQueue: 'nobody', workflowId: 'timed' });
  const { events } = await run.fetchHistory();
  const started = events?.[0]?.workflowExecutionStartedEventAttributes;
  return Number(started?.workflowTaskTimeout?.seconds ?? 0);
}

describe('the embedded server', () => {
  test('starts in a new folder with attributes, retention, the UI, and a record', async () => {
    const home = await freshHome();
    const server = await ensureServer({ home, adoptDefault: false });
    expect(server).toMatchObject({ how: 'started', namespace: 'default', home });
    const { connection } = await client(server.address);
    expect(await missingSearchAttributes(connection, 'default')).toEqual([]);
    expect(await retentionHours(connection, 'default')).toBe(720);
    expect(await workflowTaskTimeout(server.address)).toBe(5);
    expect(existsSync(join(home, 'temporal.db-wal'))).toBe(true);
    expect((await fetch(server.uiUrl ?? '')).status).toBe(200);
    const record: unknown = JSON.parse(await readFile(join(home, 'server.json'), 'utf8'));
    expect(record).toMatchObject({ pid: server.pid, version: server.version });
    expect(existsSync(join(home, 'temporal.db'))).toBe(true);
  });

  test('is adopted by the next call', async () => {
    const home = await freshHome();
    const first = await ensureServer({ home, adoptDefault: false });
    const second = await ensureServer({ home, adoptDefault: false });
    expect(second).toEqual({ ...first, how: 'adopted' });
    expect(await findServer({ home, adoptDefault: false })).toEqual(second);
  });

  test('is found by findServer only while it runs', async () => {
    const home = await freshHome();
    expect(await findServer({ home, adoptDefault: false })).toBeNull();
    await ensureServer({ home, adoptDefault: false });
    expect(await stopServer(home)).toBe(true);
    expect(await findServer({ home, adoptDefault: false })).toBeNull();
    expect(await stopServer(home)).toBe(false);
  });

  test('runs once per folder, and two folders run side by side', async () => {
    const [one, two] = await Promise.all(
      [await freshHome(), await freshHome()].map((home) =>
        ensureServer({ home, adoptDefault: false }),
      ),
    );
    expect(one?.address).not.toBe(two?.address);
    expect(one?.pid).not.toBe(two?.pid);
  });

  test('is found despite a corrupt record, which is repaired', async () => {
    const home = await freshHome();
    const server = await ensureServer({ home, adoptDefault: false });
    await writeFile(join(home, 'server.json'), '{"pid": "many"');
    const again = await ensureServer({ home, adoptDefault: false });
    expect(again).toEqual({ ...server, how: 'adopted' });
    const record: unknown = JSON.parse(await readFile(join(home, 'server.json'), 'utf8'));
    expect(record).toMatchObject({ pid: server.pid, version: server.version });
  });

  test('restarts on its database after it has ended, despite a corrupt record', async () => {
    const home = await freshHome();
    await ensureServer({ home, adoptDefault: false });
    await stopServer(home);
    await writeFile(join(home, 'server.json'), '\0\0\0');
    expect(await ensureServer({ home, adoptDefault: false })).toMatchObject({ how: 'started' });
  });

  test('is not restarted on the database of a moved folder', async () => {
    const home = await freshHome();
    const server = await ensureServer({ home, adoptDefault: false });
    const moved = await freshHome();
    await rm(moved, { recursive: true });
    await rename(home, moved);
    const again = await ensureServer({ home: moved, adoptDefault: false });
    expect(again).toMatchObject({ how: 'adopted', pid: server.pid });
  });

  test('restarts after its folder was emptied', async () => {
    const home = await freshHome();
    const server = await ensureServer({ home, adoptDefault: false });
    await rm(home, { recursive: true });
    const lines: string[] = [];
    const note = (line: string): unknown => lines.push(line);
    const again = await ensureServer({ home, adoptDefault: false, note });
    expect(again.how).toBe('started');
    expect(again.pid).not.toBe(server.pid);
    expect(lines.join()).toContain('was deleted');
  });

  test('creates another namespace with its search attributes', async () => {
    const home = await freshHome();
    await ensureServer({ home, adoptDefault: false });
    const server = await ensureServer({ home, adoptDefault: false, namespace: 'team' });
    expect(server.namespace).toBe('team');
    const { connection, workflow } = await client(server.address, 'team');
    expect(await retentionHours(connection, 'team')).toBe(720);
    expect(await missingSearchAttributes(connection, 'team')).toEqual([]);
    const handle = await workflow.start('anything', {
      taskQueue: 'nobody',
      workflowId: 'labelled',
      typedSearchAttributes: [{ key: agentName, value: 'files' }],
    });
    const { typedSearchAttributes } = await handle.describe();
    expect(typedSearchAttributes.get(agentName)).toBe('files');
  });
});
