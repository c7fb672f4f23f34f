import { Client, ServiceError } from '@temporalio/client';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { readWorkerPresence } from '../../src/cli/hosting/server-notes.js';
import { listPollers, hasLiveWorker } from '../../src/temporal/pollers.js';
import { checkForWorker } from '../../src/updates/execute-update.js';
import { ownBundle } from '../support/own-bundle.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => await rig.close());

/** Polls once, like a worker of another machine that then ends. */
async function leaveATrace(identity: string): Promise<void> {
  const { client, taskQueue } = rig;
  const gone = new AbortController();
  const namespace = client.options.namespace;
  const { connection, workflowService } = client;
  const poll = { namespace, taskQueue: { name: taskQueue }, identity };
  const polling = connection.withAbortSignal(gone.signal, () =>
    connection.withDeadline(Date.now() + 60_000, () => workflowService.pollWorkflowTaskQueue(poll)),
  );
  polling.catch(() => undefined);
  await expect
    .poll(() => listPollers(client, { namespace, taskQueue }))
    .toContainEqual(expect.objectContaining({ identity, gone: false }));
  gone.abort();
  await polling.catch(() => undefined);
}

test('a listed worker counts only if it processes the probe', async () => {
  const { client, taskQueue } = rig;
  expect(await hasLiveWorker(client, taskQueue)).toBe(false);
  await leaveATrace('1@another-machine');
  expect(await hasLiveWorker(client, taskQueue)).toBe(false);
  await rig.worker([]);
  expect(await hasLiveWorker(client, taskQueue)).toBe(true);
});

test.each([1, -1])(
  'a worker is seen from a machine whose clock is wrong by %i days',
  async (days) => {
    const { client, taskQueue } = rig;
    const right = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: right + days * 86_400_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(await hasLiveWorker(client, taskQueue)).toBe(true);
    expect(await checkForWorker(client, taskQueue)).toBe('silent');
    const presence = await readWorkerPresence(client, taskQueue);
    expect(presence).toMatchObject({
      isUp: true,
      text: expect.stringContaining('last poll 0 s ago'),
    });
  },
);

test('a worker with other workflows, which does not know the probe, counts', async () => {
  const other = await createRig();
  await other.worker([], { workflowBundle: await ownBundle() });
  await expect
    .poll(() => hasLiveWorker(other.client, other.taskQueue), { timeout: 20_000 })
    .toBe(true);
  await other.close();
});

test('the probe is not listed', async () => {
  const { client, taskQueue } = rig;
  expect(await hasLiveWorker(client, taskQueue)).toBe(true);
  const list = async (query: string): Promise<readonly string[]> => {
    const found = [];
    for await (const { workflowId } of client.workflow.list({ query })) found.push(workflowId);
    return found;
  };
  const probes = `TaskQueue = '${taskQueue}' AND WorkflowType = 'probe'`;
  const division = `${probes} AND TemporalNamespaceDivision = 'perdure-probe'`;
  // The server lists workflows with a delay.
  await expect.poll(() => list(division), { timeout: 20_000 }).not.toEqual([]);
  expect(await list(probes)).toEqual([]);
});

test('a server that rejects the namespace division is queried without it', async () => {
  const { client, taskQueue } = rig;
  const refused: string[] = [];
  const cause = Object.assign(new Error('refused'), {
    code: 3,
    details: '',
    metadata: {},
  });
  const strict = new Client({
    connection: client.connection,
    namespace: client.options.namespace,
    interceptors: {
      workflow: [
        {
          async startWithDetails(input, next) {
            if (input.options.typedSearchAttributes === undefined) return await next(input);
            refused.push(input.workflowType);
            throw new ServiceError('refused', { cause });
          },
        },
      ],
    },
  });
  expect(await hasLiveWorker(strict, taskQueue)).toBe(true);
  expect(refused).toEqual(['probe']);
});
