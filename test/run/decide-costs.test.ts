import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AgentOptions, DecideFunction } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import {
  ModelError,
  type Model,
  type ModelReply,
  type ModelRequest,
} from '../../src/models/model.js';
import { classify } from '../../src/output/classes/classes.js';
import { clientOf } from '../support/clerk.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';

let rig: Rig;
let client: PerdureClient;
beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

const price = { input: 1, cachedInput: 1, output: 2 };
const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 0 };
const never = new Promise<never>(() => undefined);

/** A value that can be awaited before it exists. */
function later<T = void>(): { readonly value: Promise<T>; readonly set: (value: T) => void } {
  let set: (value: T) => void = () => undefined;
  const value = new Promise<T>((resolve) => (set = resolve));
  return { value, set };
}

/**
 * A model that replies as requested, and a record of its requests. It never answers texts that
 * begin with "Slow".
 */
function echo(given: Partial<ModelReply> = {}): Model & { readonly asked: ModelRequest[] } {
  const asked: ModelRequest[] = [];
  return {
    asked,
    call: async (request, { signal }) => {
      asked.push(request);
      const { instructions: text } = request;
      if (text.startsWith('Slow')) {
        await new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
        });
      }
      return { text, calls: [], finish: 'stop', usage, ...given };
    },
  };
}

async function serve<T>(
  decide: DecideFunction,
  model: Model,
  rest: Partial<AgentOptions<T>> = {},
): Promise<void> {
  await rig.stopWorkers();
  const agent = defineAgent<T>({ name: 'a', instructions: 'Decide.', model: 'm', decide, ...rest });
  await rig.worker([agent], { models: { m: { ...model, price } } });
}

async function run<T>(
  decide: DecideFunction,
  model: Model,
  rest: Partial<AgentOptions<T>> = {},
): Promise<Ended> {
  await serve(decide, model, rest);
  return await rig.run({ agent: 'a', message: 'Go' });
}

describe('the cost of a decide function', () => {
  test('includes the prompt of a call that it does not await, which is aborted', async () => {
    const cut = later<unknown>();
    const model: Model = {
      call: async (request, context) => {
        const reply = echo().call(request, context);
        if (request.instructions === 'Slow.') void reply.catch(cut.set);
        return await reply;
      },
    };
    const { outcome } = await run(async ({ model: own }) => {
      const [slow, fast] = [
        own.call({ instructions: 'Slow.' }),
        own.call({ instructions: 'Fast.' }),
      ];
      return { answer: (await Promise.race([slow, fast])).text };
    }, model);
    expect(String(await cut.value)).toContain('aborted');
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Fast.' });
    expect(outcome.usage.inputTokens).toBeGreaterThan(10);
    expect(outcome.usage.estimated).toBe(true);
  });

  test('is recorded if another call fails meanwhile', async () => {
    const failed = later();
    const asked: string[] = [];
    const model: Model = {
      call: async (request, context) => {
        const { instructions: text } = request;
        asked.push(text);
        if (text === 'Bad.' && asked.length <= 2) {
          failed.set();
          throw new ModelError('overloaded', { kind: 'retry', type: 'http_503' });
        }
        if (text === 'Good.') await failed.value;
        return await echo().call(request, context);
      },
    };
    const { outcome } = await run(async ({ model: own }) => {
      const both = await Promise.all([
        own.call({ instructions: 'Good.' }),
        own.call({ instructions: 'Bad.' }),
      ]);
      return { answer: both.map(({ text }) => text).join(' ') };
    }, model);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Good. Bad.' });
    expect(asked).toEqual(['Good.', 'Bad.', 'Bad.']);
    expect(outcome.usage).toMatchObject({ inputTokens: 20, outputTokens: 10 });
  });

  test('is recorded if the turn is canceled, and a function that ignores the cancel pays for nothing more', async () => {
    const waiting = later();
    const refused = later<unknown>();
    const model = echo();
    await serve(async ({ model: own, signal }) => {
      await own.call({ instructions: 'One.' });
      await own.call({ instructions: 'Two.' });
      signal.addEventListener('abort', () => {
        own.call({ instructions: 'Late.' }).catch(refused.set);
      });
      waiting.set();
      return await never;
    }, model);
    const { id } = await client.start('a', { message: 'Go', open: true });
    await waiting.value;
    await client.cancel(id, { turn: true });
    const outcome = await client.result(id, { turn: 1 });
    expect(outcome).toMatchObject({
      status: 'cancelled',
      usage: { inputTokens: 20, outputTokens: 10 },
    });
    expect(String(await refused.value)).toContain('CANCELLED');
    expect(model.asked.map(({ instructions }) => instructions)).toEqual(['One.', 'Two.']);
    await client.close(id);
    await expect(client.status(id)).resolves.toMatchObject({ usage: { inputTokens: 20 } });
  });

  test('is recorded if the turn times out', async () => {
    const { outcome } = await run(
      async ({ model: own, closing }) => {
        if (closing) return { answer: 'It is closed.' };
        await own.call({ instructions: 'One.' });
        return await never;
      },
      echo(),
      { limits: { wallMs: 1_500 } },
    );
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'wallMs' });
    expect(outcome.usage.inputTokens).toBe(10);
  });

  test('is counted once while the run is blocked, and the reply is used when the run continues', async () => {
    let isEmpty = true;
    const asked: string[] = [];
    const model: Model = {
      call: async (request, context) => {
        asked.push(request.instructions);
        if (request.instructions === 'Two.' && isEmpty) {
          throw new ModelError('no money', { kind: 'quota', type: 'insufficient_quota' });
        }
        return await echo().call(request, context);
      },
    };
    await serve(
      async ({ model: own }) => {
        const one = await own.call({ instructions: 'One.' });
        return { answer: one.text + (await own.call({ instructions: 'Two.' })).text };
      },
      model,
      { limits: { tokens: 10_000 } },
    );
    const { id } = await client.start('a', { message: 'Go' });
    await expect
      .poll(() => client.status(id))
      .toMatchObject({ status: 'blocked', reason: 'quota', usage: { inputTokens: 10 } });
    isEmpty = false;
    await client.resume(id);
    const outcome = await client.result(id);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'One.Two.' });
    expect(outcome.usage).toMatchObject({ inputTokens: 20, outputTokens: 10 });
    expect(asked).toEqual(['One.', 'Two.', 'Two.']);
  });

  test('is counted once for a classification with several samples', async () => {
    const model: Model = {
      call: () => Promise.resolve({ text: 'yes', calls: [], finish: 'stop', usage }),
    };
    const decide: DecideFunction = async ({ model: own }) => ({ answer: (await own.call()).text });
    const { outcome } = await run(decide, model, {
      output: classify(['yes', 'no'], { samples: 4 }),
    });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'yes' });
    expect(outcome.usage).toMatchObject({ inputTokens: 40, outputTokens: 20 });
  });
});

describe('a limit within a decision', () => {
  const reading = { ...usage, inputTokens: 400, outputTokens: 100 };

  test('refuses the call that does not fit, and ends the turn with the limit', async () => {
    const model = echo({ usage: reading });
    const { outcome } = await run(
      async ({ model: own, closing }) => {
        if (closing) return { answer: 'It is closed.' };
        for (;;) await own.call({ instructions: 'More. '.repeat(300) });
      },
      model,
      { limits: { tokens: 1_800 } },
    );
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'tokens', answer: 'It is closed.' });
    expect(outcome.usage.inputTokens).toBe(1_200);
    expect(model.asked.map(({ settings }) => settings.maxOutputTokens)).toEqual([
      expect.any(Number),
      expect.any(Number),
      expect.any(Number),
    ]);
  });

  test('can be raised by a person: the decision starts over', async () => {
    const model = echo({ usage: reading });
    const long = 'More. '.repeat(300);
    const decide: DecideFunction = async ({ model: own }) => {
      for (let call = 1; call <= 4; call += 1) await own.call({ instructions: long });
      return { answer: 'All four.' };
    };
    await serve(decide, model, { limits: { tokens: 1_800 }, onLimit: 'ask' });
    const { id } = await client.start('a', { message: 'Go' });
    await expect
      .poll(() => client.status(id))
      .toMatchObject({ pending: [{ kind: 'limit', limit: { name: 'tokens', used: 1_500 } }] });
    const [{ id: request, digest } = { id: '', digest: '' }] = (await client.status(id)).pending;
    await client.resolve(id, { request, digest, as: 'raise', arguments: { tokens: 5_000 } });
    const outcome = await client.result(id);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'All four.' });
    expect(outcome.usage.inputTokens).toBe(7 * 400);
    expect(model.asked).toHaveLength(7);
  });

  test('can be caught: the function answers with what it has', async () => {
    const { outcome } = await run(
      async ({ model: own }) => {
        let count = 0;
        try {
          for (;;) {
            await own.call({ instructions: 'More.' });
            count += 1;
          }
        } catch (error) {
          return { answer: `${count}: ${String(error)}` };
        }
      },
      echo({ usage: reading }),
      { limits: { costUsd: 0.0015 } },
    );
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(outcome.answer).toMatch(/^3: .*the limit "costUsd" allows no further call/);
  });
});

test('a decide function cannot change what the next one reads', async () => {
  const received: string[] = [];
  const decide: DecideFunction = ({ messages, context }) => {
    received.push(messages[0]?.text ?? '', JSON.stringify(context));
    Object.assign(messages[0] ?? {}, { text: 'changed' });
    Object.assign(context as object, { tenant: 'changed' });
    return { answer: 'done' };
  };
  await serve(decide, echo());
  const { id } = await client.start('a', { message: 'Go', open: true, context: { tenant: 'a' } });
  await client.result(id, { turn: 1 });
  await client.send(id, 'More');
  await client.result(id, { turn: 2 });
  expect(received).toEqual(['Go', '{"tenant":"a"}', 'Go', '{"tenant":"a"}']);
});
