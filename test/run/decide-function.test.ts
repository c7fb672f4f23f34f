import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { DecideFunction } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { ModelError, type Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => await rig.close());

const price = { input: 1, cachedInput: 1, output: 2 };
const lookUp = defineTool({
  name: 'look_up',
  description: 'looks a fact up',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: ({ what }) => artifact({ found: what }, { name: 'fact', summary: 'the newest fact' }),
});

async function run(
  decide: DecideFunction,
  model: Model,
  rest: object = {},
  input: object = {},
): Promise<Ended> {
  await rig.stopWorkers();
  const agent = defineAgent({
    name: 'a',
    instructions: 'Decide.',
    model: 'm',
    tools: [lookUp],
    decide,
    ...rest,
  });
  await rig.worker([agent], { models: { m: { ...model, price } } });
  return await rig.run({ agent: 'a', message: 'Go', ...input });
}

const passOn: DecideFunction = async ({ model }) => {
  const { text, calls } = await model.call();
  return calls.length > 0 ? { calls } : { answer: text };
};

function repliesOf({ history }: Ended): readonly unknown[] {
  return (history.events ?? []).flatMap(({ activityTaskCompletedEventAttributes: done }) =>
    (done?.result?.payloads ?? []).map(
      ({ data }): unknown => JSON.parse(Buffer.from(data ?? []).toString()) as unknown,
    ),
  );
}

describe('a decide function', () => {
  test("calls its model with the step's request, and passes the calls on", async () => {
    const model = scriptedModel([
      replyCall('look_up', { what: 'gold' }),
      replyText('It is there.'),
    ]);
    const { outcome } = await run(passOn, model);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'It is there.', steps: 2 });
    expect(model.requests[0]).toMatchObject({ instructions: 'Decide.', toolChoice: 'auto' });
    expect(model.requests[0]?.tools.map(({ name }) => name)).toContain('look_up');
    expect(outcome.usage).toMatchObject({ inputTokens: 20, outputTokens: 10 });
    expect(outcome.usage.costUsd).toBeCloseTo(40 / 1e6, 9);
  });

  test('may call it several times: usage, limits, and the history include all calls', async () => {
    const asked: string[] = [];
    const model: Model = {
      call: ({ instructions: text }) => {
        asked.push(text);
        const usage = { inputTokens: 400, outputTokens: 5, cachedTokens: 0 };
        return Promise.resolve({ text, calls: [], finish: 'stop', usage });
      },
    };
    const both: DecideFunction = async ({ model: own, closing }) => {
      if (closing) return { answer: 'It is closed.' };
      const [one, other] = await Promise.all([
        own.call({ instructions: 'One.', tools: [] }),
        own.call({ instructions: 'Other.', tools: [] }),
      ]);
      return { calls: [{ name: 'look_up', arguments: { what: one.text + other.text } }] };
    };
    const ended = await run(both, model, { limits: { tokens: 1_500 } });
    expect(ended.outcome).toMatchObject({ status: 'stopped', reason: 'tokens', steps: 2 });
    expect(ended.outcome.usage.inputTokens).toBe(1_600);
    expect(asked).toEqual(['One.', 'Other.', 'One.', 'Other.']);
    expect(repliesOf(ended)).toContainEqual(
      expect.objectContaining({ decided: { modelCalls: 2, promptTokens: 400 } }),
    );
  });

  test('that is retried pays for no reply twice', async () => {
    let failures = 1;
    const asked: string[] = [];
    const model: Model = {
      call: ({ instructions }) => {
        asked.push(instructions);
        if (instructions === 'Second.' && (failures -= 1) >= 0) {
          throw new ModelError('overloaded', { kind: 'retry', type: 'http_503' });
        }
        const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 0 };
        // Too long for a heartbeat: it is recorded in the blob store.
        return Promise.resolve({
          text: instructions.repeat(500),
          calls: [],
          finish: 'stop',
          usage,
        });
      },
    };
    const { outcome } = await run(async ({ model: own }) => {
      const first = await own.call({ instructions: 'First.' });
      const second = await own.call({ instructions: 'Second.' });
      return { answer: `${first.text.length} ${second.text.length}` };
    }, model);
    expect(outcome).toMatchObject({ status: 'completed', answer: '3000 3500' });
    expect(asked).toEqual(['First.', 'Second.', 'Second.']);
    expect(outcome.usage.inputTokens).toBe(20);
  });

  test('that throws after it has called the model is charged for the calls', async () => {
    const model = scriptedModel([replyText('yes')]);
    const { outcome } = await run(async ({ model: own }) => {
      await own.call();
      throw new Error('no idea');
    }, model);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(outcome.error).toContain('no idea');
    expect(outcome.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
  });

  test('that throws leaves the message in the prompts of later turns', async () => {
    await rig.stopWorkers();
    const seen: (readonly string[])[] = [];
    const decide: DecideFunction = async ({ messages }) => {
      seen.push(messages.map(({ text }) => text));
      if (seen.length === 1) throw new Error('the database of documents is down');
      return { answer: 'It is blue.' };
    };
    const agent = defineAgent({ name: 'open', instructions: 'Decide.', model: 'm', decide });
    await rig.worker([agent], { models: { m: { ...scriptedModel([]), price } } });
    const handle = await rig.start({ agent: 'open', message: 'What color is it?', open: true });
    expect(await outcomeOf(handle, 1)).toMatchObject({ status: 'failed', reason: 'error' });
    await ask(handle, 'And now?');
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'It is blue.' });
    expect(seen[1]).toEqual(['What color is it?', 'And now?']);
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await rig.end(handle);
  });

  test('may catch a model error, which otherwise counts as for any model call', async () => {
    const model: Model = {
      call: () =>
        Promise.reject(new ModelError('no such thing', { kind: 'request', type: 'http_400' })),
    };
    const caught = await run(async ({ model: own }) => {
      const { text } = await own.call().catch((error: unknown) => ({ text: String(error) }));
      return { answer: text };
    }, model);
    expect(caught.outcome).toMatchObject({ status: 'completed' });
    expect(caught.outcome.answer).toContain('no such thing');
    const thrown = await run(passOn, model);
    expect(thrown.outcome).toMatchObject({ status: 'failed', error: 'no such thing' });
  });

  test('reads the values of artifacts', async () => {
    const seen: unknown[] = [];
    const fact = z.object({ found: z.string() });
    const { outcome } = await run(async ({ artifacts, messages }) => {
      seen.push(await artifacts.list());
      if (messages.at(-1)?.role !== 'tool') {
        return { calls: [{ name: 'look_up', arguments: '{"what": "gold"}' }] };
      }
      const missing: unknown = await artifacts.get('fat').catch((error: unknown) => error);
      expect(String(missing)).toMatch(/unknown artifact "fat".*fact/);
      return { answer: (await artifacts.get('fact', fact)).found };
    }, scriptedModel([]));
    expect(outcome).toMatchObject({ status: 'completed', answer: 'gold' });
    const info = { name: 'fact', summary: 'the newest fact', tool: 'look_up' };
    expect(seen).toEqual([[], [expect.objectContaining(info)]]);
  });

  test('rejects an invalid request, each time', async () => {
    const wrong: readonly (readonly [unknown, string])[] = [
      [{ prompt: 'x' }, 'prompt: expected one of instructions, messages, tools'],
      ['x', 'expected an object of a request\'s fields, got "x"'],
      [{ settings: null }, 'settings: expected an object, got null'],
      [
        { settings: { maxOutputTokens: -5 } },
        'settings.maxOutputTokens: expected a whole number from 1, got -5',
      ],
      [{ messages: 'hi' }, 'messages: expected a list, got "hi"'],
      [{ messages: [{ role: 'user', text: 1n }] }, 'messages[0].text: expected a string'],
      [{ messages: [{ role: 'system', text: '' }] }, 'messages[0].role: expected one of user,'],
      [{ tools: null }, 'tools: expected a list, got null'],
      [{ toolChoice: 'maybe' }, 'toolChoice: expected one of auto, required, none, got "maybe"'],
      [{ settings: { seed: 1n } }, 'settings: expected JSON, got a value that has none'],
    ];
    const told: unknown[] = [];
    const model = scriptedModel([replyText('yes')]);
    const { outcome } = await run(async ({ model: given }) => {
      for (const [request] of wrong) {
        told.push(await given.call(request as never).catch((error: unknown) => error));
      }
      return { answer: (await given.call({ prompt: 'x' } as never)).text };
    }, model);
    expect(told.map(String)).toEqual(
      wrong.map(([, words]) => expect.stringContaining(`model.call: ${words}`) as string),
    );
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(outcome.error).toContain('model.call: prompt: expected one of');
  });

  test('rejects too many model calls', async () => {
    const model = scriptedModel(Array.from({ length: 33 }, () => replyText('yes')));
    const { outcome } = await run(async ({ model: given }) => {
      for (;;) await given.call();
    }, model);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(outcome.error).toContain('model.call: expected at most 32 calls in a decision');
  });
});
