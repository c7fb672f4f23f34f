import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { recordRun } from '../../src/recordings/record-run.js';
import { rerun } from '../../src/recordings/rerun.js';
import { replyCall, replyText, scriptedModel } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: ({ at }) => `seen ${at}`,
});
const clerk = defineAgent({
  name: 'clerk',
  description: 'Looks.',
  instructions: 'Look.',
  model: 'clerk',
  tools: [look],
});
const lead = defineAgent({
  name: 'lead',
  description: 'Leads.',
  instructions: 'Lead.',
  model: 'lead',
  agents: [clerk],
});
const mail = defineGraph({
  name: 'mail',
  instructions: 'Write.',
  state: z.object({ text: z.string(), found: z.string().optional() }),
  messageTo: 'text',
  nodes: ({ agent }) => ({
    ask: agent({ agent: lead, message: (s) => s.text, save: 'found' }),
  }),
}).wire({ start: 'ask', edges: { ask: { done: 'end', stopped: 'end', failed: 'end' } } });

let rig: Rig;
let client: PerdureClient;
beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  const replies = [replyCall('clerk', { message: 'Order 17?' }), replyText('It is late.')];
  await rig.worker([lead, mail], {
    models: {
      lead: scriptedModel([...replies, ...replies]),
      clerk: scriptedModel(
        [1, 2].flatMap(() => [replyCall('look', { at: '17' }), replyText('late')]),
      ),
    },
  });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

test.each([lead, mail])('a run of $name is rerun with those that it has called', async (agent) => {
  const run = await client.start(agent.name, 'Where is it?');
  await rig.end(rig.client.workflow.getHandle(run.id));
  const recording = await recordRun(client, run);
  const again = await rerun(recording, { agent });
  expect(again.divergence?.text ?? null).toBeNull();
  expect(again.recording.runs.map(({ id }) => id)).toEqual(recording.runs.map(({ id }) => id));
});
