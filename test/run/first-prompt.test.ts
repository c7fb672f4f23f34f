import { WorkflowClient, type WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { historyToJson } from '../../src/history/history-event.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

// The first workflow task hands the run's first message to the local activity that loads the agent,
// so that its worker has the prompt of the first model call.

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => {
  vi.restoreAllMocks();
  await rig.close();
});

/** Returns how many events of a history contain a text. */
async function eventsWith(handle: WorkflowHandle, text: string): Promise<number> {
  const json = historyToJson(await handle.fetchHistory());
  const { events } = JSON.parse(json) as { readonly events: readonly unknown[] };
  const data = (event: unknown): string =>
    [...JSON.stringify(event).matchAll(/"data":"([^"]*)"/g)]
      .map(([, bytes = '']) => Buffer.from(bytes, 'base64').toString())
      .join('\n');
  return events.filter((event) => data(event).includes(text)).length;
}

/** Returns how often a run's activities have queried its workflow for a prompt. */
async function promptQueries(input: Readonly<Record<string, unknown>>): Promise<number> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a protected method of the SDK
  const client = WorkflowClient.prototype as unknown as {
    _queryWorkflowHandler(query: { readonly queryType: string }): Promise<unknown>;
  };
  const spy = vi.spyOn(client, '_queryWorkflowHandler');
  const handle = await rig.start({ agent: 'clerk', ...input });
  expect(await handle.result()).toMatchObject({ answer: 'ok' });
  // The message is recorded once, by the start.
  if (input['message'] !== undefined) expect(await eventsWith(handle, 'go there')).toBe(1);
  const sent = spy.mock.calls.filter(([{ queryType }]) => queryType === 'prompt');
  spy.mockRestore();
  return sent.length;
}

test('the first model call of a run with a message does not query its workflow', async () => {
  const model = scriptedModel([replyText('ok'), replyText('ok')]);
  const agent = defineAgent({ name: 'clerk', instructions: 'x', model: 'm' });
  await rig.worker([agent], { models: { m: model } });
  expect(await promptQueries({ message: 'go there' })).toBe(0);
  // What the cache cannot know is still read from the workflow.
  const messages = [
    { role: 'user', text: 'one' },
    { role: 'assistant', text: 'two' },
    { role: 'user', text: 'three' },
  ];
  expect(await promptQueries({ messages })).toBe(1);
});
