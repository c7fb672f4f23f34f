import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { ModelOptions } from '../../src/models/model-entry.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { type Reply, replyCalls, replyError, replyText } from '../../src/testing/replies.js';
import { type Stub, startStub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { createRig, type Rig } from '../support/rig.js';

const noMoney = replyError(429, { code: 'insufficient_quota', message: 'no money' });
const down = replyError(503, { message: 'down' }, { headers: { 'retry-after-ms': '10' } });
const badKey = replyError(401, { message: 'bad key' });
const CHEAP = { input: 1, cachedInput: 1, output: 1 };
const DEAR = { input: 10, cachedInput: 10, output: 10 };
const usage = { usage: { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 } };

let rig: Rig;
let client: PerdureClient;
let stubs: readonly [Stub, Stub];

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
});

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
  stubs = [await startStub(), await startStub()];
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
  await Promise.all(stubs.map((stub) => stub.close()));
});

/**
 * Starts a run whose two models answer with these scripts. Each run has a worker of its own, because
 * a worker remembers which models have failed.
 */
async function start(
  first: readonly Reply[],
  second: readonly Reply[],
  {
    spare = {},
    input = {},
  }: { readonly spare?: Partial<ModelOptions>; readonly input?: object } = {},
): Promise<string> {
  const marker = `conversation-${randomUUID()}`;
  const [one, other] = stubs;
  one.scriptFor(marker, ...first);
  other.scriptFor(marker, ...second);
  const agent = defineAgent({
    name: 'a',
    instructions: 'hi',
    model: ['m', 'spare'],
    tools: [look],
  });
  await rig.stopWorkers();
  await rig.worker([agent], {
    models: {
      m: { baseUrl: one.baseUrl, price: CHEAP, window: 100_000 },
      spare: { baseUrl: other.baseUrl, price: DEAR, window: 50_000, ...spare },
    },
    env: { OPENAI_API_KEY: 'x' },
  });
  return (await client.start(agent, { message: marker, ...input })).id;
}

const requests = (): readonly number[] => stubs.map((stub) => stub.requests.length);

async function statusWhen(run: string, reason: string): Promise<RunStatus> {
  return await vi.waitFor(
    async () => {
      const status = await client.status(run);
      expect(status).toMatchObject({ status: 'blocked', reason });
      return status;
    },
    { timeout: 20_000, interval: 50 },
  );
}

describe('a fallback', () => {
  test('answers when the quota is spent, at its own price, and the transcript names it', async () => {
    const [one] = requests();
    const run = await start(
      [noMoney],
      [replyCalls([{ name: 'look', arguments: {} }], usage), replyText('from the spare', usage)],
    );
    const outcome = await client.result(run);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'from the spare' });
    expect(outcome.usage.costUsd).toBeCloseTo((400 * 10) / 1e6, 9);
    // The second call of the turn begins with the fallback, because the model has just failed.
    expect((requests()[0] ?? 0) - (one ?? 0)).toBe(1);
    const { messages } = await client.transcript(run);
    expect(messages.flatMap((each) => (each.role === 'assistant' ? each.model : []))).toEqual([
      'spare',
      'spare',
    ]);
  });

  test('answers after two failures in a row of a provider that is down', async () => {
    const [one] = requests();
    const run = await start([down, down], [replyText('from the spare')]);
    expect(await client.result(run)).toMatchObject({ answer: 'from the spare' });
    expect((requests()[0] ?? 0) - (one ?? 0)).toBe(2);
  });

  test('is not called for a refused key, which blocks the run', async () => {
    const [, other] = requests();
    const run = await start([badKey], [replyText('never')]);
    expect(await statusWhen(run, 'credentials')).toMatchObject({ reports: [{ status: 401 }] });
    expect(requests()[1]).toBe(other);
    await client.cancel(run);
  });

  test('that takes no images is passed over, and the picture stays in the prompt', async () => {
    const [, other] = requests();
    const image = { type: 'image', url: 'https://example.org/a.png' } as const;
    const run = await start(
      [down, down, replyText('a cat'), replyText('still a cat')],
      [replyText('never')],
      { spare: { capabilities: { images: false } }, input: { attachments: [image], open: true } },
    );
    expect(await client.result(run, { turn: 1 })).toMatchObject({ answer: 'a cat' });
    // This worker has seen the first model fail, and yet begins with it.
    await client.send(run, { message: 'And now?' });
    expect(await client.result(run, { turn: 2 })).toMatchObject({ answer: 'still a cat' });
    expect(requests()[1]).toBe(other);
    expect(JSON.stringify(stubs[0].requests.at(-1)?.body)).toContain(image.url);
    await client.close(run);
  });

  test('blocks the run when it fails, too; the first model is called on resume', async () => {
    const run = await start([noMoney, replyText('from the first')], [noMoney]);
    const { reports } = await statusWhen(run, 'quota');
    expect(reports).toHaveLength(2);
    await client.resume(run);
    const outcome = await client.result(run);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'from the first' });
    const { messages } = await client.transcript(run);
    expect(messages.at(-1)).not.toHaveProperty('model');
  });

  test('must have a known price where money is limited', async () => {
    const agent = defineAgent({
      name: 'priced',
      instructions: 'hi',
      model: ['gpt-5-mini', 'nobody-knows-it'],
      limits: { costUsd: 1 },
    });
    await rig.stopWorkers();
    await rig.worker([agent], {});
    const outcome = await client.result(await client.start(agent, 'x'));
    expect(outcome.error ?? '').toContain(
      'limits.costUsd: the price of model "nobody-knows-it" is unknown',
    );
  });
});

test.each([[[]], [['a', 'a']], [['a', '']], [7], [Array.from({ length: 9 }, (_, n) => `m${n}`)]])(
  'the models %j are refused',
  (model) => {
    expect(() => defineAgent({ name: 'a', instructions: 'x', model: model as never })).toThrow(
      'model: expected the name of a model, or a list of 1 to 8 different names',
    );
  },
);
