import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { type Classification, binaryClassify, classify } from '../../src/output/classes/classes.js';
import { ParseError } from '../../src/output/parse-output.js';
import { tags } from '../../src/output/parse-tags.js';
import { template } from '../../src/prompts/template.js';
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

const person = z.object({ name: z.string(), age: z.number().int().min(0) });
const lookUp = defineTool({
  name: 'look_up',
  description: 'looks a fact up',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: ({ what }) => `${what}: found`,
});

type Options = Omit<Parameters<typeof defineAgent>[0], 'name' | 'model' | 'instructions'>;

/** Runs a new agent with a script. */
async function run(
  options: Options & { readonly instructions?: Parameters<typeof defineAgent>[0]['instructions'] },
  script: Parameters<typeof scriptedModel>[0],
  input: Record<string, unknown> = {},
): Promise<Ended & { readonly model: ReturnType<typeof scriptedModel> }> {
  const model = scriptedModel(script);
  await rig.stopWorkers();
  const agent = defineAgent({ name: 'a', instructions: 'extract', model: 'm', ...options });
  await rig.worker([agent], { models: { m: model } });
  return { ...(await rig.run({ agent: 'a', message: 'Ann is 40', ...input })), model };
}

const modelCalls = ({ history }: Ended): number =>
  (history.events ?? []).filter(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'callModel',
  ).length;

describe('an answer under contract', () => {
  test('is the output if it is valid, with or without fences and prose around it', async () => {
    const answer = 'Here you are:\n```json\n{"name": "Ann", "age": 40}\n```';
    const { outcome, model } = await run({ output: person }, [replyText(answer)]);
    expect(outcome).toMatchObject({
      status: 'completed',
      reason: 'answer',
      output: { name: 'Ann', age: 40 },
      steps: 1,
    });
    expect(model.requests[0]?.responseFormat).toMatchObject({ name: 'answer' });
  });

  test('goes back to the model with the problem; the repair is pruned, paid for, and not a step', async () => {
    const ended = await run({ output: person }, [
      replyText('{"name": "Ann", "age": "forty"}'),
      replyText('{"name": "Ann", '),
      replyText('{"name": "Ann", "age": 40}'),
    ]);
    const { outcome, model, projection } = ended;
    expect(outcome).toMatchObject({ output: { name: 'Ann', age: 40 }, steps: 1 });
    expect(outcome.usage.inputTokens).toBe(30);
    expect(modelCalls(ended)).toBe(3);
    expect(model.requests[1]?.messages.at(-1)?.text).toMatch(/attempt 1 of 10.*age/s);
    expect(model.requests[2]?.messages).toHaveLength(5);
    expect(projection.state?.transcript.messages.map(({ text }) => text)).toEqual([
      'Ann is 40',
      '{"name": "Ann", "age": 40}',
    ]);
    const side = projection.messages.filter((m) => m.role !== 'tool' && m.side);
    expect(side).toHaveLength(4);
  });

  test('ends as invalid after the last attempt, or as a best effort that is marked as such', async () => {
    const wrong = '{"name": "Ann", "age": -1}';
    const failed = await run({ output: person, attempts: 2 }, [replyText(wrong), replyText(wrong)]);
    expect(failed.outcome).toMatchObject({
      status: 'failed',
      reason: 'invalid_output',
      answer: wrong,
      output: null,
    });
    const best = await run({ output: person, attempts: 2, onInvalid: 'best_effort' }, [
      replyText(wrong),
      replyText(wrong),
    ]);
    expect(best.outcome).toMatchObject({ status: 'completed', output: { name: 'Ann', age: -1 } });
    expect(best.outcome.issues?.[0]).toContain('age');
  });

  test('is, as a best effort, the last one that was readable', async () => {
    const partly = '{"name": "Ann", "age": -1}';
    const bestEffort = { output: person, onInvalid: 'best_effort' } as const;
    const kept = { output: { name: 'Ann', age: -1 }, issues: [expect.stringContaining('age')] };
    const used = await run({ ...bestEffort, attempts: 2 }, [
      replyText(partly),
      replyText('I give up.'),
    ]);
    expect(used.outcome).toMatchObject({ status: 'completed', answer: 'I give up.', ...kept });
    const capped = await run({ ...bestEffort, limits: { steps: 1 }, tools: [lookUp] }, [
      replyText(partly),
      replyCall('look_up', { what: 'age' }),
      replyText('Time is up.'),
    ]);
    expect(capped.outcome).toMatchObject({ status: 'stopped', reason: 'steps', ...kept });
    const none = await run({ ...bestEffort, attempts: 1 }, [replyText('No idea.')]);
    expect(none.outcome).toMatchObject({ status: 'completed', output: null });
    expect(none.outcome.issues).toHaveLength(1);
  });

  test('may be repaired with a tool call, whose result stays in the transcript', async () => {
    const { outcome, projection } = await run({ output: person, tools: [lookUp] }, [
      replyText('no idea'),
      replyCall('look_up', { what: 'age' }),
      replyText('{"name": "Ann", "age": 40}'),
    ]);
    expect(outcome).toMatchObject({ output: { name: 'Ann', age: 40 }, steps: 3, toolCalls: 1 });
    expect(projection.state?.transcript.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
    ]);
  });

  test('can be parsed by a function, which receives the run’s context', async () => {
    const { outcome, model } = await run(
      {
        output: (text: string, { context }: { context: unknown }) => {
          if (!text.includes('=')) throw new ParseError('write key=value');
          return { text, context };
        },
      },
      [replyText('nothing'), replyText('a=1')],
      { context: { tenant: 7 } },
    );
    expect(outcome.output).toEqual({ text: 'a=1', context: { tenant: 7 } });
    expect(model.requests[1]?.messages.at(-1)?.text).toContain('write key=value');
  });

  test('can consist of tags', async () => {
    const { outcome, model } = await run(
      { output: tags({ xml: [{ name: 'answer', required: true }], signals: ['DONE'] }) },
      [replyText('<plan>x</plan>'), replyText('<answer lang="en">42</answer> <DONE>')],
    );
    expect(outcome.output).toMatchObject({
      xml: { answer: [{ text: '42', attributes: { lang: 'en' } }] },
      signals: { DONE: true },
    });
    expect(model.requests[1]?.messages.at(-1)?.text).toContain('<answer> is missing');
  });

  test('costs nothing for an agent without one: the same events, the same request', async () => {
    const plain = await run({}, [replyText('hello')]);
    expect(plain.model.requests[0]).not.toHaveProperty('responseFormat');
    expect(plain.outcome).not.toHaveProperty('issues');
    const [recorded] = (plain.history.events ?? []).flatMap(
      (event) => event.activityTaskCompletedEventAttributes?.result?.payloads ?? [],
    );
    expect(JSON.parse(Buffer.from(recorded?.data ?? []).toString())).toEqual({
      text: 'hello',
      finish: 'stop',
      usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0 },
    });
  });

  test('in an open run leaves no trace of a repair in the next turn', async () => {
    const model = scriptedModel([
      replyText('x'),
      replyText('{"name": "Ann", "age": 40}'),
      replyText('{"name": "Bob", "age": 41}'),
    ]);
    await rig.stopWorkers();
    const agent = defineAgent({ name: 'a', instructions: 'e', model: 'm', output: person });
    await rig.worker([agent], { models: { m: model } });
    const handle = await rig.start({ agent: 'a', message: 'Ann', open: true });
    await outcomeOf(handle, 1);
    await ask(handle, 'Bob');
    expect(await outcomeOf(handle, 2)).toMatchObject({ output: { name: 'Bob' } });
    expect(model.requests[2]?.messages.map(({ text }) => text)).toEqual([
      'Ann',
      '{"name": "Ann", "age": 40}',
      'Bob',
    ]);
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await rig.end(handle);
  });
});

describe('a decision', () => {
  const decide = (decision: unknown): ReturnType<typeof replyText> =>
    replyText(JSON.stringify({ decision }));

  test('can be JSON under a schema, for models without tool calling', async () => {
    const { outcome, model, projection } = await run({ decide: 'schema', tools: [lookUp] }, [
      decide({ action: 'look_up', arguments: { what: 'iron' } }),
      replyText('I think I am done'),
      decide({ action: 'answer', answer: 'it is found' }),
    ]);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'it is found', toolCalls: 1 });
    const [first, second] = model.requests;
    expect(first?.tools).toEqual([]);
    expect(first?.instructions).toContain('look_up: looks a fact up');
    expect(second?.messages.map(({ role, text }) => [role, text])).toEqual([
      ['user', 'Ann is 40'],
      ['assistant', '{"decision":{"action":"look_up","arguments":{"what":"iron"}}}'],
      ['user', 'Result of look_up:\niron: found'],
    ]);
    expect(projection.state?.transcript.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
    ]);
  });

  test('can be made by a function instead of a model', async () => {
    const { outcome, model } = await run(
      {
        tools: [lookUp],
        decide: ({ messages, context }) => {
          const last = messages.at(-1);
          if (last?.role === 'tool') return { answer: `${last.text} ${JSON.stringify(context)}` };
          return { calls: [{ name: 'look_up', arguments: { what: 'gold' } }] };
        },
      },
      [],
      { context: 'x' },
    );
    expect(outcome).toMatchObject({ status: 'completed', answer: 'gold: found "x"', steps: 2 });
    expect(model.requests).toHaveLength(0);
  });

  test('by a function that throws, or returns nothing usable, ends the turn with its message', async () => {
    const thrown = await run(
      {
        decide: () => {
          throw new Error('no idea');
        },
      },
      [],
    );
    expect(thrown.outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(thrown.outcome.error).toContain('no idea');
    const odd = await run({ decide: (() => 7) as never }, []);
    expect(odd.outcome.error).toContain('{ answer: "text" }');
  });

  test('in plain text is the answer, or a failure that names the fix', async () => {
    const plain = await run({ tools: [lookUp] }, [replyText('hi')]);
    expect(plain.outcome).toMatchObject({ status: 'completed', answer: 'hi' });
    const strict = await run({ tools: [lookUp], onPlainText: 'fail' }, [replyText('hi')]);
    expect(strict.outcome).toMatchObject({ status: 'failed', reason: 'invalid_output' });
    expect(strict.outcome.error).toContain('decide "schema"');
  });
});

describe('instructions', () => {
  const instructions = template('You answer about {{city}}.', { args: ['city'], version: '2' });

  test('can be a template, filled in with the run’s arguments', async () => {
    const { outcome, model } = await run({ instructions }, [replyText('ok')], {
      args: { city: 'Rome {{x}}' },
    });
    expect(model.requests[0]?.instructions).toBe('You answer about Rome {{x}}.');
    expect(outcome.template).toBe(instructions.hash);
  });

  test.each([
    [{}, 'city'],
    [{ city: 'Rome', town: 'x' }, 'town'],
  ])('with arguments %j are refused at the start', async (args, name) => {
    const { outcome } = await run({ instructions }, [], { args });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(outcome.error).toContain(name);
  });
});

describe('a classifier', () => {
  const logprobs = (token: string, others: Readonly<Record<string, number>>) => [
    {
      token,
      logprob: Math.log(others[token] ?? 1),
      top: Object.entries(others).map(([one, p]) => ({ token: one, logprob: Math.log(p) })),
    },
  ];

  test('reports the probability of each class, and the share outside of them', async () => {
    const { outcome, model, projection } = await run({ output: classify(['spam', 'not spam']) }, [
      { ...replyText('A'), logprobs: logprobs('A', { A: 0.6, B: 0.3, Hello: 0.1 }) },
    ]);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'spam', steps: 1 });
    const { output } = outcome as unknown as { output: Classification };
    expect(output.best).toBe('spam');
    expect(output.classes[0]?.probability).toBeCloseTo(2 / 3, 5);
    expect(output.outside).toBeCloseTo(0.1, 5);
    expect(model.requests[0]?.logprobs?.top).toBe(5);
    expect(model.requests[0]?.messages.at(-1)?.text).toContain('A = spam');
    expect(projection.state?.transcript.messages.map(({ text }) => text)).toEqual([
      'Ann is 40',
      'spam',
    ]);
  });

  test('retries if the reply is none of the classes, and prunes that reply', async () => {
    const { outcome, projection } = await run({ output: binaryClassify() }, [
      { ...replyText('Well'), logprobs: logprobs('Well', { Well: 0.9 }) },
      { ...replyText('B'), logprobs: logprobs('B', { A: 0.25, B: 0.75 }) },
    ]);
    expect(outcome).toMatchObject({ answer: 'false', usage: { inputTokens: 20 } });
    expect(projection.state?.transcript.messages).toHaveLength(2);
  });

  test('is refused for a model without probabilities, unless it may sample several times', async () => {
    const refused = await run({ output: classify(['a thing', 'b thing']) }, [replyText('A')]);
    expect(refused.outcome).toMatchObject({ status: 'failed' });
    expect(refused.outcome.error).toContain('samples: 10');
    const voted = await run({ output: classify(['a thing', 'b thing'], { samples: 4 }) }, [
      replyText('A'),
      replyText('B'),
      replyText('A: a thing'),
      replyText('a thing'),
    ]);
    expect(voted.outcome).toMatchObject({
      answer: 'a thing',
      output: { best: 'a thing', samples: 4 },
      usage: { inputTokens: 40 },
    });
  });
});
