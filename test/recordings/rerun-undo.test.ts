import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { recordRun } from '../../src/recordings/record-run.js';
import type { Recording } from '../../src/recordings/recording.js';
import { rerun } from '../../src/recordings/rerun.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { createDesk, type Desk } from '../support/requests.js';

/** A rerun does not undo calls and revoke grants; the other decisions of such a run are compared. */
let desk: Desk;
let client: PerdureClient;

/** A clerk whose refunds above this amount need an approval, and so do their undos. */
function clerkAbove(euros: number): Agent {
  const refund = defineTool({
    name: 'refund',
    description: 'Refunds.',
    effect: 'keyed',
    repeat: 'allow',
    input: z.object({ euros: z.number() }),
    execute: () => 'ok',
    undo: () => desk.did('undo'),
  });
  return defineAgent({
    name: 'clerk',
    instructions: 'x',
    model: 'script',
    tools: [refund],
    rules: [{ tool: 'refund', where: { op: 'over', path: 'euros', value: euros }, then: 'ask' }],
  });
}
const clerk = clerkAbove(50);

beforeAll(async () => {
  desk = await createDesk();
  await desk.work([clerk]);
  client = await clientOf(desk.rig);
});
afterAll(async () => {
  await client.disconnect();
  await desk.close();
});

/** An open run that has made these refunds, the first of which was approved, with these fields of the decision. */
async function refunded(euros: readonly number[], decision: object = {}): Promise<WorkflowHandle> {
  desk.reset();
  desk.script([...euros.map((amount) => ({ refund: { euros: amount } })), 'Refunded.']);
  const { handle } = await desk.asked({ agent: 'clerk', message: 'go', open: true });
  await desk.decide(handle, { as: 'approve', ...decision });
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  return handle;
}

async function recorded({ workflowId }: WorkflowHandle): Promise<Recording> {
  const recording = await recordRun(client, workflowId);
  return parseRecording(JSON.parse(JSON.stringify(recording)));
}

async function difference(recording: Recording, agent: Agent): Promise<string | undefined> {
  return (await rerun(recording, { agent })).divergence?.text;
}

const UNASKED = /asked for no decision about refund \{"euros":80\}; recorded a decision$/;

test('a rule that asks no longer is found in a run whose call was undone', async () => {
  const handle = await refunded([80]);
  await client.undo(handle.workflowId);
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.decide(handle, { as: 'approve' });
  await desk.untilDone('undo');
  await desk.statusWhere(handle, ({ pending }) => pending.length === 0);
  const recording = await recorded(handle);
  expect(await difference(recording, clerk)).toBeUndefined();
  expect(await difference(recording, clerkAbove(100))).toMatch(UNASKED);
  // The decision about the undo is no consent to the call itself.
  const runs = recording.runs.map(({ facts, ...run }) => ({
    ...run,
    facts: facts.filter((fact) => fact.type !== 'decision' || fact.about?.undo === true),
  }));
  expect(await difference({ ...recording, runs }, clerk)).toMatch(/would ask about refund/);
});

test('a rule that asks no longer is found in a run whose grant was revoked afterwards', async () => {
  const handle = await refunded([80, 90], { grant: { scope: 'tool' } });
  await client.revoke(handle.workflowId, 'g1');
  const recording = await recorded(handle);
  expect(await difference(recording, clerk)).toBeUndefined();
  expect(await difference(recording, clerkAbove(100))).toMatch(UNASKED);
});
