import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { replyText, type Reply } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { killTogether } from '../support/kill-together.js';
import { createRig, type Rig } from '../support/rig.js';
import { messagesIn, segmentsOf, turnsIn } from '../support/segments.js';

/** The worker is killed before the summary begins to arrive, and after a part of it has. */
const PLACES = [
  { where: 'before its first word', hold: 'holdBeforeHeaders' },
  { where: 'in the middle of its text', hold: 'holdAfterHeaders' },
].map((place) => ({ ...place, id: `summary-${randomUUID()}` }));
const WINDOW = 2_000;

let rig: Rig;
let home: string;
let stub: Stub;
let stop = async (): Promise<void> => undefined;
const handles = new Map<string, WorkflowHandle>();
const summaries = new Map<string, StubRequest[]>();
const prompts = new Map<string, StubRequest[]>();

/** Answers each message; the first prompt fills the window, so the next turn begins with a summary. */
function answer(request: StubRequest): Reply {
  const place = PLACES.find(({ id }) => request.text.includes(id));
  const { id = '' } = place ?? {};
  const isSummary = request.text.includes('You summarize a conversation');
  const seen = isSummary ? summaries : prompts;
  seen.set(id, [...(seen.get(id) ?? []), request]);
  if (isSummary) {
    const isFirst = summaries.get(id)?.length === 1;
    return replyText(`SUMMARY of ${id}`, { ...(isFirst && place && { [place.hold]: id }) });
  }
  const tokens = prompts.get(id)?.length === 1 ? WINDOW - 100 : 50;
  // More than what a summary leaves of the newest messages.
  return replyText(`answered ${'x'.repeat(4_000)}`, {
    usage: { prompt_tokens: tokens, completion_tokens: 5, total_tokens: tokens + 5 },
  });
}

beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  home = await mkdtemp(join(tmpdir(), 'perdure-summary-kill-'));
  stub.answer(answer);
  const killed = await killTogether(rig.client, {
    env: {
      ADDRESS: inject('temporalAddress'),
      QUEUE: `summary-kill-${randomUUID()}`,
      LEDGER: 'http://127.0.0.1:9',
      WINDOW: String(WINDOW),
      OPENAI_BASE_URL: stub.baseUrl,
      OPENAI_API_KEY: 'x',
      PERDURE_HOME: home,
    },
    runs: PLACES.map(({ id }) => ({
      id,
      input: { agent: 'crash', open: true, message: `first of ${id}` },
      held: async (handle) => {
        await outcomeOf(handle, 1);
        await ask(handle, `second of ${id}`);
        await stub.barrier(id).reached;
        // This message arrives while the conversation is being summarized.
        await ask(handle, `third of ${id}`);
      },
    })),
  });
  ({ stop } = killed);
  for (const handle of killed.handles) handles.set(handle.workflowId, handle);
  for (const { id } of PLACES) stub.barrier(id).release();
});
afterAll(async () => {
  await stop();
  await Promise.all([rig.close(), stub.close()]);
  await rm(home, { recursive: true, force: true });
});

test.each(PLACES)(
  'a worker killed in a summary, $where: it is paid once more, and no message is lost',
  async ({ id }) => {
    const handle = handles.get(id);
    if (handle === undefined) throw new Error(id);
    for (const turn of [2, 3]) {
      expect(await outcomeOf(handle, turn)).toMatchObject({ status: 'completed', steps: 1 });
    }
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();

    expect(summaries.get(id)).toHaveLength(2);
    const [first, again] = (summaries.get(id) ?? []).map(({ messages }) =>
      JSON.stringify(messages),
    );
    expect(again).toBe(first);
    // Nothing but the summary is asked for again.
    expect(prompts.get(id)).toHaveLength(3);
    const newest = prompts.get(id)?.at(-1)?.text ?? '';
    for (const part of [`SUMMARY of ${id}`, `second of ${id}`, `third of ${id}`]) {
      expect(newest).toContain(part);
    }
    expect(newest).not.toContain(`first of ${id}`);

    const segments = await segmentsOf(rig.client, id);
    expect(turnsIn(segments)).toHaveLength(3);
    const messages = messagesIn(segments);
    expect(messages.map(({ n }) => n)).toEqual(messages.map((_, at) => at));
    const told = messages.filter(
      ({ role, text }) => role === 'user' && text.includes(' of summary-'),
    );
    expect(told.map(({ text }) => text)).toEqual([
      `first of ${id}`,
      `second of ${id}`,
      expect.stringContaining(`SUMMARY of ${id}`),
      `third of ${id}`,
    ]);
  },
);
