import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { AgentOptions } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Json } from '../../src/core/text/json.js';
import { ParseError } from '../../src/output/parse-output.js';
import { tags, type TagAnswer } from '../../src/output/parse-tags.js';
import {
  replyCalls,
  replyCompletion,
  replyError,
  replyText,
  type Reply,
} from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openDesk, sent, spoken, type Desk, type RunReport } from '../support/desk.js';
import { createMemoryRig } from '../support/memory-rig.js';

const person = z.object({ name: z.string(), age: z.number().int() });
const ANN = { name: 'Ann', age: 40 };
const GOOD = JSON.stringify(ANN);
const OLD = '{"name":"Ann","age":"forty"}';

const lookUp = defineTool({
  name: 'look_up',
  description: 'looks a fact up',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: ({ what }) => `${what}: found`,
});

function agent(name: string, rest: Partial<AgentOptions<unknown>> = {}) {
  const options = { name, instructions: 'Extract the person.', model: 'm', output: person };
  return defineAgent<unknown>({ ...options, ...rest });
}

let desk: Desk;
beforeAll(async () => {
  const agents = [
    agent('person'),
    agent('twice', { attempts: 2 }),
    agent('best-effort', { attempts: 2, onInvalid: 'best_effort' }),
    agent('claude', { model: 'claude-sonnet' }),
    agent('with-tool', { tools: [lookUp] }),
    agent('responses', { model: 'responses', tools: [lookUp] }),
    agent('tagged', {
      output: tags({
        xml: [{ name: 'answer', required: true }, 'answers', 'note'],
        fences: ['json', 'jsonc'],
        signals: ['DONE'],
      }),
    }),
    agent('by-function', {
      attempts: 3,
      output: (text: string) => {
        const [key, value] = text.split('=');
        if (value === undefined) throw new ParseError(`"${text}" is not of the form key=value`);
        return { [key ?? '']: value };
      },
    }),
  ];
  desk = await openDesk(
    agents,
    { m: {}, 'claude-sonnet': {}, responses: { api: 'responses' } },
    { rig: await createMemoryRig(), enforces: false },
  );
});
afterAll(async () => await desk.close());

const side = async ({ handle }: RunReport) =>
  (await desk.client.transcript(handle.workflowId, { side: true })).messages.filter(
    (one) => one.role !== 'tool' && one.side,
  );

describe('T-25 a typed answer', () => {
  test('T-25 that is valid at once costs one call, with the schema in the request', async () => {
    const { outcome, requests } = await desk.run('person', [replyText(GOOD)]);
    expect(outcome).toMatchObject({ status: 'completed', output: ANN, steps: 1 });
    expect(requests[0]?.body).toMatchObject({
      response_format: { type: 'json_schema', json_schema: { strict: true } },
    });
    expect(requests).toHaveLength(1);
  });

  test.each([
    ['of the wrong type', OLD, /attempt 1 of 10.*age/s],
    ['with broken syntax', '{"name": "Ann", "age": ', /attempt 1 of 10/],
    ['without any JSON', 'I do not know.', /attempt 1 of 10.*JSON/s],
  ])(
    'T-25 %s is sent back with the problem, after the same conversation',
    async (_n, bad, says) => {
      const { outcome, requests } = await desk.run('person', [replyText(bad), replyText(GOOD)]);
      expect(outcome).toMatchObject({ status: 'completed', output: ANN, steps: 1 });
      expect(sent(requests[1])).toEqual([
        ...sent(requests[0]),
        ['assistant', bad],
        ['user', expect.stringMatching(says)],
      ]);
    },
  );

  test('T-25 that stays invalid is a typed failure, or a best effort that is marked as such', async () => {
    const twice = [replyText(OLD), replyText(OLD)];
    const failed = await desk.run('twice', twice);
    expect(failed.outcome).toMatchObject({
      status: 'failed',
      reason: 'invalid_output',
      output: null,
      answer: OLD,
    });
    const best = await desk.run('best-effort', twice);
    expect(best.outcome).toMatchObject({ status: 'completed', output: JSON.parse(OLD) as Json });
    expect(best.outcome.issues?.[0]).toContain('age');
  });

  test('T-25 needs at least one attempt: 0 is refused when the agent is defined', () => {
    expect(() => agent('none', { attempts: 0 })).toThrow(
      'attempts: expected number to be >=1, got 0',
    );
  });

  test('T-25 from a model without schemas is requested in words, not refused', async () => {
    const { outcome, requests } = await desk.run('claude', [replyText(`Here: ${GOOD}`)]);
    expect(outcome).toMatchObject({ status: 'completed', output: ANN });
    expect(requests[0]?.body).not.toHaveProperty('response_format');
    expect(requests[0]?.messages[0]?.content).toMatch(/Extract the person\..*"age"/s);
  });

  test('T-25 from a server that refuses schemas is requested without one, at once', async () => {
    const refuse = (type: string): Reply =>
      replyError(400, { message: `response_format ${type} is not supported` });
    const { outcome, requests } = await desk.run('person', [
      refuse('json_schema'),
      refuse('json_object'),
      replyText(OLD),
      replyText(GOOD),
    ]);
    expect(outcome).toMatchObject({ status: 'completed', output: ANN, steps: 1 });
    const formats = requests.map(
      ({ body }) => (body['response_format'] as { type: string } | undefined)?.type,
    );
    // Remembered: the repair does not send what the server has refused.
    expect(formats).toEqual(['json_schema', 'json_object', undefined, undefined]);
  });
});

describe('an agent call', () => {
  test('T-44 a refused answer costs one more call and leaves no trace except a side branch', async () => {
    const answers = ['nothing', 'a=1', 'b=2'].map((text) => replyText(text));
    const run = await desk.open('by-function', answers);
    expect(run.first).toMatchObject({ output: { a: '1' }, usage: { inputTokens: 20 } });
    expect(await run.ask('And b?')).toMatchObject({ output: { b: '2' } });
    const report = await run.close();
    const expected = [
      ['assistant', 'a=1'],
      ['user', 'And b?'],
    ];
    expect(spoken(report.messages).slice(1)).toEqual([...expected, ['assistant', 'b=2']]);
    expect(sent(report.requests[2]).slice(2)).toEqual(expected);
    expect(report.requests).toHaveLength(3);
    expect(spoken(await side(report))).toEqual([
      ['assistant', 'nothing'],
      ['user', expect.stringContaining('"nothing" is not of the form key=value')],
    ]);
  });

  test('T-45 after the last attempt, the failure carries the last problem', async () => {
    const bad = ['one', 'two', 'three'].map((text) => replyText(text));
    const { outcome, requests } = await desk.run('by-function', bad);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'invalid_output', answer: 'three' });
    expect(outcome.error).toContain('"three" is not of the form');
    expect(requests).toHaveLength(3);
  });

  test('T-46 an answer after a tool, whose result has the role tool, has the same schema', async () => {
    const { outcome, requests } = await desk.run('with-tool', [
      replyCalls([{ name: 'look_up', arguments: { what: 'age' } }]),
      replyText('She is forty.'),
      replyText(GOOD),
    ]);
    expect(outcome).toMatchObject({ status: 'completed', output: ANN, steps: 2, toolCalls: 1 });
    expect(requests[1]?.messages.at(-1)).toEqual({
      role: 'tool',
      tool_call_id: 'call_1_1_0',
      content: 'age: found',
    });
    expect(requests[2]?.messages.slice(0, 4)).toEqual(requests[1]?.messages);
  });

  test('T-46 the same in the Responses API, where a result is an output of its call', async () => {
    const { outcome, requests } = await desk.run('responses', [
      replyCalls([{ name: 'look_up', arguments: { what: 'age' } }]),
      replyText('She is forty.'),
      replyText(GOOD),
    ]);
    expect(outcome).toMatchObject({ status: 'completed', output: ANN, steps: 2, toolCalls: 1 });
    const input = requests[1]?.body['input'] as Json[] | undefined;
    expect(input?.at(-1)).toEqual({
      type: 'function_call_output',
      call_id: 'call_1_1_0',
      output: 'age: found',
    });
    expect(requests[0]?.body).toMatchObject({ text: { format: { type: 'json_schema' } } });
  });

  test('T-54 a format that the Responses API refuses is requested in words, at once', async () => {
    const message = "Unsupported parameter: 'text.format' is not supported with this model.";
    const refusal = replyError(400, { message, param: 'text.format' });
    const steps = [refusal, refusal, replyText(GOOD)];
    const { outcome, requests } = await desk.run('responses', steps);
    expect(outcome).toMatchObject({ status: 'completed', output: ANN, steps: 1 });
    const last = requests.at(-1)?.body;
    expect(last).not.toHaveProperty('text');
    expect(JSON.stringify(last)).toContain('JSON');
  });

  test('T-52 tags are read: several, nested, of like names, fences in fences, a signal', async () => {
    const text = [
      '<answers>x</answers> <answer>a <note>b</note></answer> and <answer>2</answer> <DONE>',
      '```jsonc\n{} // c\n```',
      '````json\n```json\n1\n```\n````',
    ].join('\n');
    const { outcome } = await desk.run('tagged', [replyText(text)]);
    const output: Partial<TagAnswer> = {
      raw: text,
      xml: {
        answer: [
          { text: 'a <note>b</note>', attributes: {} },
          { text: '2', attributes: {} },
        ],
        answers: [{ text: 'x', attributes: {} }],
        note: [{ text: 'b', attributes: {} }],
      },
      fences: { json: ['```json\n1\n```'], jsonc: ['{} // c'] },
      signals: { DONE: true },
    };
    expect(outcome).toMatchObject({ status: 'completed', output });
  });

  test('T-52 tags are read: no signal', async () => {
    const text = '<answer>y</answer> DONE';
    const { outcome } = await desk.run('tagged', [replyText(text)]);
    const output = { raw: text, signals: { DONE: false } };
    expect(outcome).toMatchObject({ status: 'completed', output });
  });

  test('T-52 a missing required tag is requested by name', async () => {
    const steps = [replyText('<note>x</note>'), replyText('<answer>y</answer>')];
    const { outcome, requests } = await desk.run('tagged', steps);
    expect(outcome.status).toBe('completed');
    expect(requests[1]?.messages.at(-1)?.content).toContain('<answer> is missing');
  });

  test('T-53 a refusal in place of the format ends the turn as such, and is not repaired', async () => {
    const message = { role: 'assistant', content: null, refusal: 'I cannot do that.' };
    const completion = { choices: [{ index: 0, message, finish_reason: 'stop' }] };
    const { outcome, requests } = await desk.run('person', [replyCompletion(completion)]);
    expect(outcome).toMatchObject({
      status: 'failed',
      reason: 'refused',
      answer: 'I cannot do that.',
      output: null,
    });
    expect(requests).toHaveLength(1);
  });
});
