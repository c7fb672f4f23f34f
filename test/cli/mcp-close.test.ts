import { afterAll, beforeAll, expect, test } from 'vitest';
import { clerk, clientOf } from '../support/clerk.js';
import { obedientModel } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';
import { connectToRuns } from '../support/runs-client.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
  await rig.worker([clerk()], { models: { m: obedientModel() } });
});
afterAll(async () => await rig.close());

/** Calls a tool of the command's MCP server. */
async function callTool(name: string, args: Record<string, unknown>) {
  const client = await connectToRuns(rig, { allRuns: true });
  try {
    const { content, structuredContent } = await client.callTool({ name, arguments: args });
    return { value: structuredContent, text: JSON.stringify(content) };
  } finally {
    await client.close();
  }
}

test('agent_close ends an open run after its messages, and refuses any other run', async () => {
  const client = await clientOf(rig);
  const { id } = await client.start('clerk', { message: 'done', open: true });
  expect((await callTool('agent_close', { id })).value).toEqual({ id, closed: true });
  await rig.client.workflow.getHandle(id).result();
  const { outcome } = await client.status(id);
  expect(outcome?.status).toBe('completed');
  expect((await callTool('agent_close', { id })).text).toContain('code: run_ended');
  expect((await callTool('agent_close', { id: 'no-such-run' })).text).toContain('code: no_run');
});
