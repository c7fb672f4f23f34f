import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { auditRuns } from '../../src/client/audit.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { recordRun } from '../../src/recordings/record-run.js';
import { messageSignal } from '../../src/workflows/messages/definitions.js';
import { clerk, clientOf } from '../support/clerk.js';
import { obedientModel } from '../support/conversation.js';
import { ownBundle } from '../support/own-bundle.js';
import { createRig, type Rig } from '../support/rig.js';

const SAID =
  'a newer version of perdure wrote the run: the run\'s history has the patch "semantics-99", ' +
  'which this version does not know; deploy the version that wrote it; nothing is lost meanwhile';

let rig: Rig;
let client: PerdureClient;
beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

test('a run of a newer version waits on a worker of this one, each reader says why, and the newer one continues it', async () => {
  const id = `newer-${randomUUID()}`;
  rig.exempt('a newer version of perdure runs it', id);
  const newer = async () =>
    await rig.worker([clerk()], {
      models: { m: obedientModel() },
      workflowBundle: await ownBundle(),
    });
  await newer();
  const message = 'to a newer version';
  await client.start('clerk', { id, open: true, message });
  const answer = (await client.result(id, { turn: 1 })).answer ?? '';
  expect(answer).toContain(message);
  await rig.stopWorkers();

  // A worker that has just stopped counts as one for minutes, so an update would wait for it.
  const handle = rig.client.workflow.getHandle(id);
  await handle.signal(messageSignal, { message: 'again', id: 'm-2' });
  await rig.worker([clerk()], { models: { m: obedientModel() } });
  await vi.waitFor(
    async () => {
      const { events = [] } = await handle.fetchHistory();
      const failed = events?.findLast((event) => event.workflowTaskFailedEventAttributes);
      expect(failed?.workflowTaskFailedEventAttributes?.failure?.message).toContain('semantics-99');
    },
    { timeout: 60_000, interval: 200 },
  );
  expect((await handle.describe()).status.name).toBe('RUNNING');
  expect(await client.status(id)).toMatchObject({ message: SAID });
  const { rows } = await client.list({ idPrefix: id });
  expect(rows).toMatchObject([{ id, agent: 'clerk', unreadable: SAID }]);
  await expect(auditRuns(client, [id])).rejects.toThrow(`run "${id}": ${SAID}`);
  await expect(recordRun(client, id)).rejects.toThrow(`run "${id}": ${SAID}`);
  await rig.stopWorkers();

  await newer();
  expect((await client.result(id, { turn: 2 })).answer).toContain('again');
  await client.close(id);
  expect((await client.result(id)).status).toBe('completed');
});
