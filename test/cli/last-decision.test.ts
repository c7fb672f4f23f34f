import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { deny } from '../../src/cli/commands/approve.js';
import { attach } from '../../src/cli/commands/run.js';
import { status } from '../../src/cli/commands/status.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { runInProcess } from '../support/in-process.js';
import { createRig } from '../support/rig.js';

test('a decision after which nothing is left to do does not ask for a worker', async () => {
  const rig = await createRig();
  const graph = defineGraph({
    name: 'sure',
    state: z.object({}),
    nodes: ({ confirm }) => ({ ask: confirm({ show: () => 'Sure?' }) }),
  }).wire({ start: 'ask', edges: { ask: { yes: 'end', no: 'end' } } });
  await rig.worker([graph]);
  const { workflowId: id } = await rig.start({ agent: 'sure', input: {} });
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  await expect
    .poll(async () => (await runInProcess(status, { id }, place)).stdout)
    .toContain('waiting_decision');
  await rig.stopWorkers();
  const { stderr } = await runInProcess(deny, { id, request: 'r1' }, place);
  expect(stderr).toContain(': deny; the run resumes. Follow it with: ');
  expect(stderr).not.toContain('No worker');
  const followed = await runInProcess(attach, { id, wait: true }, place);
  expect(followed.code).toBe(0);
  await rig.close();
});
