import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import { messageTokens } from '../../src/core/transcript/transcript.js';
import { replyText } from '../../src/testing/replies.js';
import type { ModelRequest } from '../../src/models/model.js';
import { clerk, clientOf } from '../support/clerk.js';
import { replyTo } from '../support/conversation.js';
import { forgetSegments } from '../support/forget-run.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const LONG = 'x'.repeat(1_800);
let rig: Rig;
let client: PerdureClient;

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  // A request without tools is one for a summary.
  const model = {
    call: async (request: ModelRequest) => {
      const reply = request.tools.length === 0 ? replyText('a summary') : replyTo(request);
      const inputTokens = request.messages.reduce((sum, one) => sum + messageTokens(one), 0);
      return { ...reply, usage: { inputTokens, outputTokens: 5, cachedTokens: 0 } };
    },
    window: 3_000,
  };
  const segment = { steps: 2, bytes: 2_000_000 };
  await rig.worker([clerk()], { models: { m: model }, segment });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

async function talk(turns: number, text: (turn: number) => string): Promise<string> {
  const id = `transcript-${randomUUID()}`;
  for (let turn = 1; turn <= turns; turn += 1) {
    await client.send(id, text(turn), { start: { agent: 'clerk' } });
  }
  await client.result(id, { turn: turns });
  await client.close(id);
  // The last turn ends before the run, and a history that is still growing cannot be replayed.
  await rig.client.workflow.getHandle(id).result();
  return id;
}

/** Deletes all segments but the last, as the server does after their retention. */
async function forgetEarlier(id: string): Promise<void> {
  const segments = await segmentsOf(rig.client, id);
  await forgetSegments(
    rig.client,
    id,
    segments.slice(0, -1).map(({ runId }) => runId),
  );
}

describe('a transcript', () => {
  test('covers all segments, as a whole or as a range', async () => {
    const id = await talk(5, (turn) => `message ${turn}`);
    expect((await segmentsOf(rig.client, id)).length).toBeGreaterThan(2);
    const { messages, total, completeFrom } = await client.transcript(id);
    expect([messages.length, total, completeFrom]).toEqual([10, 10, 0]);
    expect(messages.map(({ n }) => n)).toEqual(messages.map((_, n) => n));
    expect(messages.map(({ text }) => text).slice(0, 3)).toEqual([
      'message 1',
      'done: message 1',
      'message 2',
    ]);
    const part = await client.transcript(id, { from: 1, to: 4 });
    expect(part.messages.map(({ n }) => n)).toEqual([1, 2, 3]);
    expect(part).toMatchObject({ total: 10, completeFrom: 1 });
    expect((await client.transcript(id, { from: 8, to: 99 })).messages).toHaveLength(2);
  });

  test('has a summary where it was made, after the messages that it replaces', async () => {
    const id = await talk(5, (turn) => `message ${turn} ${LONG}`);
    const { messages, total } = await client.transcript(id);
    expect(messages).toHaveLength(total);
    const [summary] = messages.flatMap((message) =>
      message.role === 'user' && message.compacts ? [message] : [],
    );
    expect(summary?.text).toContain('a summary');
    expect(summary?.compacts?.from).toBe(0);
    expect(summary?.compacts?.to).toBeLessThan(summary?.n ?? 0);
    expect(messages[0]?.text).toBe(`message 1 ${LONG}`);
    const compacted: number[] = [];
    for await (const event of client.events(id)) {
      if (event.type === 'transcript-compacted') compacted.push(event.message.n);
    }
    expect(compacted[0]).toBe(summary?.n);
  });

  test('reads deleted segments from the archive, and reports what is missing without one', async () => {
    const id = await talk(6, (turn) => `message ${turn} ${LONG.repeat(6)}`);
    const whole = await client.transcript(id);
    rig.exempt('the test deletes its earlier segments', id);
    await forgetEarlier(id);
    const { messages, completeFrom, total } = await client.transcript(id);
    expect(messages.map(({ n, text }) => [n, text])).toEqual(
      whole.messages.map(({ n, text }) => [n, text]),
    );
    expect([completeFrom, total]).toEqual([0, whole.total]);
    await rm(join(rig.home, 'archive'), { recursive: true });
    const rest = await client.transcript(id);
    expect(rest.completeFrom).toBeGreaterThan(0);
    expect(rest.messages.at(-1)?.n).toBe(total - 1);
    expect(rest.messages.filter(({ n }) => n >= rest.completeFrom)).toHaveLength(
      total - rest.completeFrom,
    );
    await expect(client.result(id, { turn: 1 })).rejects.toThrow(
      `turn 1 of run ${id} is over, and the server no longer keeps that part`,
    );
    expect((await client.result(id)).answer).toContain('done: message 6');
    // The events begin with the oldest segment that is kept.
    const types: string[] = [];
    for await (const event of client.events(id)) types.push(event.type);
    expect([types[0], types.at(-1)]).toEqual(['segment-begun', 'run-ended']);
  }, 120_000);
});
