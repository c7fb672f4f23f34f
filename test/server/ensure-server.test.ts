import { existsSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { describe, expect, test } from 'vitest';
import { ensureServer } from '../../src/server/ensure-server.js';
import { findServer, stopServer } from '../../src/server/dev-server.js';
import { missingSearchAttributes, retentionHours } from '../../src/server/namespace.js';
import type { ServerHandle } from '../../src/server/server-settings.js';
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
  // One folder through all that can happen to it, as each start of a server takes seconds of CPU time.
  let home: string;
  let server: ServerHandle;
  const ensure = (): Promise<ServerHandle> => ensureServer({ home, adoptDefault: false });
  const find = (): Promise<ServerHandle | null> => findServer({ home, adoptDefault: false });
  const record = async (): Promise<unknown> =>
    JSON.parse(await readFile(join(home, 'server.json'), 'utf8'));

  test('starts in a new folder with attributes, retention, the UI, and a record; two folders run side by side', async () => {
    home = await freshHome();
    expect(await find()).toBeNull();
    const other = await freshHome();
    const [one, two] = await Promise.all([
      ensure(),
      ensureServer({ home: other, adoptDefault: false }),
    ]);
    server = one;
    expect(two.address).not.toBe(server.address);
    expect(two.pid).not.toBe(server.pid);
    expect(server).toMatchObject({ how: 'started', namespace: 'default', home });
    const { connection } = await client(server.address);
    expect(await missingSearchAttributes(connection, 'default')).toEqual([]);
    expect(await retentionHours(connection, 'default')).toBe(720);
    expect(await workflowTaskTimeout(server.address)).toBe(5);
    expect(existsSync(join(home, 'temporal.db-wal'))).toBe(true);
    expect((await fetch(server.uiUrl ?? '')).status).toBe(200);
    expect(await record()).toMatchObject({ pid: server.pid, version: server.version });
    expect(existsSync(join(home, 'temporal.db'))).toBe(true);
  });

  test('is adopted by the next call', async () => {
    const second = await ensure();
    expect(second).toEqual({ ...server, how: 'adopted', isNew: undefined });
    expect(await find()).toEqual(second);
  });

  test('is found with a corrupt record, which is repaired', async () => {
    await writeFile(join(home, 'server.json'), '{"pid": "many"');
    expect(await ensure()).toEqual({ ...server, how: 'adopted', isNew: undefined });
    expect(await record()).toMatchObject({ pid: server.pid, version: server.version });
  });

  test('creates another namespace with its search attributes, which its callers can use at once', async () => {
    const ensureTeam = async (workflowId: string): Promise<void> => {
      const team = await ensureServer({ home, adoptDefault: false, namespace: 'team' });
      expect(team.namespace).toBe('team');
      const { connection, workflow } = await client(team.address, 'team');
      expect(await retentionHours(connection, 'team')).toBe(720);
      expect(await missingSearchAttributes(connection, 'team')).toEqual([]);
      const handle = await workflow.start('anything', {
        taskQueue: 'nobody',
        workflowId,
        typedSearchAttributes: [{ key: agentName, value: 'files' }],
      });
      const { typedSearchAttributes } = await handle.describe();
      expect(typedSearchAttributes.get(agentName)).toBe('files');
    };
    const first = ensureTeam('first');
    // The second caller finds the attributes before the server accepts them.
    const { connection } = await client(server.address);
    const missing = () => missingSearchAttributes(connection, 'team').catch(() => null);
    await expect.poll(missing, { interval: 5, timeout: 20_000 }).toEqual([]);
    await Promise.all([first, ensureTeam('second')]);
  });

  test('is not started again on the database of a moved folder', async () => {
    const moved = await freshHome();
    await rm(moved, { recursive: true });
    await rename(home, moved);
    home = moved;
    expect(await ensure()).toMatchObject({ how: 'adopted', pid: server.pid });
  });

  test('is found by findServer only while it runs', async () => {
    expect(await find()).not.toBeNull();
    expect(await stopServer(home)).toBe(true);
    expect(await find()).toBeNull();
    expect(await stopServer(home)).toBe(false);
  });

  test('starts on its database with a corrupt record after it has ended', async () => {
    await writeFile(join(home, 'server.json'), '\0\0\0');
    server = await ensure();
    expect(server).toMatchObject({ how: 'started' });
  });

  test('restarts when its folder was emptied', async () => {
    await rm(home, { recursive: true });
    const lines: string[] = [];
    const note = (line: string): unknown => lines.push(line);
    const again = await ensureServer({ home, adoptDefault: false, note });
    expect(again.how).toBe('started');
    expect(again.pid).not.toBe(server.pid);
    expect(lines.join()).toContain('was deleted');
  });
});
