import { fileURLToPath } from 'node:url';
import { randomUUID } from 'node:crypto';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { reviewer } from '../../examples/existing-worker/agents.js';
import * as activities from '../../examples/existing-worker/activities.js';
import { perdurePlugin } from '../../src/worker/plugin.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => await rig.close());

test('a workflow of the project runs an agent between its own steps', async () => {
  const model = scriptedModel([replyText('{"accepted": true, "reason": "all is there"}')]);
  const plugins = [
    perdurePlugin({
      agents: [reviewer],
      models: { m: model },
      env: { PERDURE_HOME: rig.home, PERDURE_MODEL: 'm' },
    }),
  ];
  const workflowBundle = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(
      new URL('../../examples/existing-worker/workflows.ts', import.meta.url),
    ),
    plugins,
    logger: new DefaultLogger('ERROR'),
    webpackConfigHook: (config) => ({
      ...config,
      resolve: {
        ...config.resolve,
        alias: {
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK gives an object
          ...(config.resolve?.alias as Readonly<Record<string, string>>),
          'perdure/workflow': fileURLToPath(new URL('../../src/workflow.ts', import.meta.url)),
        },
      },
    }),
  });
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
  const { taskQueue } = rig;
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowBundle,
    activities,
    plugins,
  });
  const accepted = await worker.runUntil(
    rig.client.workflow.execute('review', {
      taskQueue,
      workflowId: `review-${randomUUID()}`,
      args: ['a-1'],
    }),
  );
  await connection.close();
  expect(accepted).toBe(true);
  expect(log.mock.calls).toContainEqual(['a-1 is accepted: all is there']);
  log.mockRestore();
  model.assertConsumed();
});
