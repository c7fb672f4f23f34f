import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type {
  FunctionTool,
  Response,
  ResponseInputItem,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { type ScriptedCall, replyCalls } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

const weather: FunctionTool = {
  type: 'function',
  name: 'weather',
  description: 'Tells the weather.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
  strict: true,
};
const sign = defineTool({
  name: 'sign',
  description: 'Lets the user sign.',
  effect: 'keyed',
  input: z.object({ text: z.string() }),
  output: z.object({ signature: z.string() }),
});
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'keyed',
  input: z.object({}),
  execute: () => 'paid',
});
const signer = defineAgent({
  name: 'signer',
  instructions: 'x',
  model: 'talk',
  tools: [sign, pay],
});

let desk: HttpDesk;
let openai: OpenAI;
let eve: OpenAI;

beforeAll(async () => {
  desk = await openHttpDesk(
    ['ann', 'eve', 'joe'],
    {
      principals: {
        ann: { rights: { '*': 'all' } },
        eve: { rights: { other: 'all' } },
        joe: { rights: { '*': ['start'] } },
      },
    },
    { agents: [signer] },
  );
  const clientOf = (name: string) =>
    new OpenAI({ baseURL: `${desk.url}/v1`, apiKey: keyOf(name), maxRetries: 0 });
  openai = clientOf('ann');
  eve = clientOf('eve');
  script('one city', [inCity('Oslo')]);
  script('two cities', [inCity('Oslo'), inCity('Rome')]);
});
afterAll(() => desk.close());

/** Replies to a question with calls, and to what they return with its words. */
function script(question: string, calls: readonly ScriptedCall[]): void {
  desk.talker.on(question, async ({ request }) => {
    const { messages } = request;
    const since = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1);
    const said = since.map(({ text }) => text).join(' and ');
    return said === question ? replyCalls([...calls]) : `It is: ${said}`;
  });
}

const inCity = (city: string) => ({ name: 'weather', arguments: { city } });

const callsOf = ({ output }: Pick<Response, 'output'>) =>
  output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
const outputsFor = (
  calls: readonly { readonly call_id: string }[],
  output: string,
): ResponseInputItem[] =>
  calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output }));
const ask = (input: string, more: object = {}) =>
  openai.responses.create({ model: 'talker', input, tools: [weather], ...more });
const answered = (response: Response, output: string, more: object = {}) =>
  openai.responses.create({
    model: 'talker',
    previous_response_id: response.id,
    input: outputsFor(callsOf(response), output),
    ...more,
  });

describe('responses with tools of the client', () => {
  test('end with a call, and go on with its result', async () => {
    const first = await ask('one city');
    expect(first.status).toBe('completed');
    const [call] = callsOf(first);
    expect(call).toMatchObject({ type: 'function_call', name: 'weather', status: 'completed' });
    expect(JSON.parse(call?.arguments ?? '')).toEqual({ city: 'Oslo' });
    expect(first.usage?.output_tokens).toBeGreaterThan(0);
    const second = await answered(first, 'sun', { tools: [weather] });
    expect([second.status, second.output_text]).toEqual(['completed', 'It is: sun']);
    expect(second.id).not.toBe(first.id);
    // The same again is the same response, and neither has changed.
    expect((await answered(first, 'sun')).id).toBe(second.id);
    const read = await Promise.all([first, second].map(({ id }) => openai.responses.retrieve(id)));
    expect(read.map(({ output }) => output)).toEqual([first.output, second.output]);
    const third = await openai.responses.create({
      model: 'talker',
      previous_response_id: second.id,
      input: 'rain',
    });
    expect(third.output_text).toBe('It is: rain');
  });

  test('are streamed, and the stream of each part is the same when it is read again', async () => {
    const read = async (stream: AsyncIterable<ResponseStreamEvent>) => {
      const events: ResponseStreamEvent[] = [];
      for await (const event of stream) events.push(event);
      return events;
    };
    const started = await openai.responses.create({
      model: 'talker',
      input: 'two cities',
      tools: [weather],
      stream: true,
    });
    const events = await read(started);
    const last = events.at(-1);
    if (last?.type !== 'response.completed') throw new Error(`it ended with ${last?.type}`);
    const calls = callsOf(last.response);
    expect(calls.map((call) => JSON.parse(call.arguments).city)).toEqual(['Oslo', 'Rome']);
    const argumentsIn = events.flatMap((event) =>
      event.type === 'response.function_call_arguments.done' ? [event.arguments] : [],
    );
    expect(argumentsIn).toEqual(calls.map((call) => call.arguments));
    const types = events.map(({ type }) => type);
    expect(types.filter((type) => type.includes('function_call'))).toHaveLength(4);
    const numbers = events.map((event) => event.sequence_number);
    expect(numbers).toEqual([...new Set(numbers)].toSorted((one, other) => one - other));

    const helper = openai.responses.stream({
      model: 'talker',
      previous_response_id: last.response.id,
      input: outputsFor(calls, 'rain'),
    });
    const final = await helper.finalResponse();
    expect(final.output_text).toBe('It is: rain and rain');
    const again = await read(await openai.responses.retrieve(last.response.id, { stream: true }));
    expect(again.map(({ type, sequence_number: at }) => [type, at])).toEqual(
      events.map(({ type, sequence_number: at }) => [type, at]),
    );
    const rest = await openai.responses.retrieve(final.id, { stream: true });
    const end = (await read(rest)).at(-1);
    if (end?.type !== 'response.completed') throw new Error(`it ended with ${end?.type}`);
    expect(end.response).toMatchObject({ id: final.id, usage: { ...final.usage } });
    expect(JSON.stringify(end.response.output)).toContain('It is: rain and rain');
  });

  test('run in the background, in a conversation, and with the whole history of a client', async () => {
    const { id: conversation } = await openai.conversations.create();
    const begun = await ask('one city', { background: true, conversation });
    await expect
      .poll(async () => (await openai.responses.retrieve(begun.id)).status)
      .toBe('completed');
    const first = await openai.responses.retrieve(begun.id);
    const late = ask('and now?', { conversation });
    await expect(late).rejects.toThrow('input: the run waits for the results of call_1_1_0_');
    const second = await openai.responses.create({
      model: 'talker',
      conversation,
      input: outputsFor(callsOf(first), 'sun'),
      tools: [weather],
      background: true,
    });
    expect(second.id).toMatch(/^resp_1r1b_/);
    await expect
      .poll(async () => (await openai.responses.retrieve(second.id)).output_text)
      .toBe('It is: sun');
    expect((await ask('rain', { conversation })).output_text).toBe('It is: rain');

    // A message that is sent again is the same turn, also while that waits.
    desk.talker.on('rain', async ({ number }) =>
      number === 1 ? 'dry' : replyCalls([inCity('Oslo')]),
    );
    const dry = await ask('rain');
    const next = { previous_response_id: dry.id };
    const wet = await ask('more', next);
    expect(callsOf(wet)).toHaveLength(1);
    expect((await ask('more', next)).id).toBe(wet.id);
    await expect(ask('other', next)).rejects.toMatchObject({ status: 409 });

    // Clients without `previous_response_id` send all that they know.
    const other = await ask('two cities');
    const history: ResponseInputItem[] = [
      { role: 'user', content: 'two cities' },
      ...callsOf(other),
      ...outputsFor(callsOf(other), 'rain'),
    ];
    const ended = await openai.responses.create({
      model: 'talker',
      input: history,
      tools: [weather],
    });
    expect(ended.output_text).toBe('It is: rain and rain');
    expect(ended.id).toMatch(/^resp_1r2_/);
  });

  test('take no result that is forged, late, doubled, or incomplete', async () => {
    const [first, other] = [await ask('two cities'), await ask('one city')];
    const calls = callsOf(first);
    const send = (input: ResponseInputItem[], more: object = {}, client = openai) =>
      client.responses.create({
        model: 'talker',
        previous_response_id: first.id,
        input,
        ...more,
      });
    const [one, two] = outputsFor(calls, 'sun');
    if (one === undefined || two === undefined) throw new Error('no calls');
    await expect(send([one])).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining('input: expected the results of all calls') as string,
    });
    await expect(send([one, two, two])).rejects.toThrow('call_id: expected each call once');
    await expect(send([one, { role: 'user', content: 'x' }])).rejects.toThrow('got both');
    const foreign = outputsFor(callsOf(other), 'sun');
    await expect(send([one, two, ...foreign])).rejects.toMatchObject({ status: 404 });
    const forged = { type: 'function_call_output' as const, call_id: 'call_x', output: 'sun' };
    await expect(send([forged])).rejects.toMatchObject({ status: 404, code: 'not_found' });
    const never = {
      ...one,
      call_id: String(calls[0]?.call_id).replace('call_1_1_0', 'call_1_7_0'),
    };
    await expect(send([never])).rejects.toMatchObject({ status: 409 });
    // Another principal does not see the run.
    for (const previous of [first.id, null]) {
      const stolen = { model: 'other', previous_response_id: previous };
      await expect(send([one, two], stolen, eve)).rejects.toMatchObject({ status: 404 });
    }
    const run = Buffer.from(first.id.split('_')[2] ?? '', 'base64url').toString();
    expect((await desk.client.status(run)).pending.map(({ id }) => id)).toEqual(['r1', 'r2']);
    const [read] = [await send([one, two])];
    expect(read?.output_text).toBe('It is: sun and sun');
    const late = outputsFor(calls, 'rain');
    await expect(send(late)).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining('which is answered or has ended') as string,
    });
    expect((await send([two, one])).id).toBe(read?.id);
    await expect(
      openai.responses.retrieve(first.id.replace('resp_1', 'resp_1r9')),
    ).rejects.toMatchObject({ status: 404 });
  });

  test('may be answered by whoever has started the run, without the right to decide', async () => {
    const joe = new OpenAI({ baseURL: `${desk.url}/v1`, apiKey: keyOf('joe'), maxRetries: 0 });
    const first = await joe.responses.create({
      model: 'talker',
      input: 'one city',
      tools: [weather],
    });
    const second = await joe.responses.create({
      model: 'talker',
      previous_response_id: first.id,
      input: outputsFor(callsOf(first), 'sun'),
    });
    expect(second.output_text).toBe('It is: sun');
    script('joe signs', [{ name: 'sign', arguments: { text: 'a' } }]);
    const asked = await joe.responses.create({ model: 'signer', input: 'joe signs' });
    const given = {
      model: 'signer',
      previous_response_id: asked.id,
      input: outputsFor(callsOf(asked), '{"signature":"joe"}'),
    };
    await expect(joe.responses.create(given)).rejects.toMatchObject({ status: 403 });
    expect((await openai.responses.create(given)).output_text).toBe('It is: {"signature":"joe"}');
  });

  test('of an agent without `execute` are checked against its schema, and can be sent again', async () => {
    script('sign it', [{ name: 'sign', arguments: { text: 'a' } }]);
    const first = await openai.responses.create({ model: 'signer', input: 'sign it' });
    const send = (output: string) =>
      openai.responses.create({
        model: 'signer',
        previous_response_id: first.id,
        input: outputsFor(callsOf(first), output),
      });
    await expect(send('no JSON')).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('it does not fit the tool') as string,
    });
    await expect(send('no JSON')).rejects.toMatchObject({ status: 400 });
    expect((await send('{"signature":"ann"}')).output_text).toBe('It is: {"signature":"ann"}');
  });

  test.each<[string, object, string]>([
    [
      'a tool of the agent',
      { model: 'signer', tools: [{ type: 'function', name: 'pay', parameters: null }] },
      'tools.0.name: expected a name that agent "signer" does not use, got "pay"',
    ],
    [
      'a tool of the provider',
      { tools: [weather, { type: 'web_search' }] },
      'tools.1.type: expected "function", a tool that the client executes, got "web_search"',
    ],
    ['a bad name', { tools: [{ ...weather, name: 'a b' }] }, 'tools.0.name: expected 1 to 64'],
    [
      'a schema that is no object',
      { tools: [{ ...weather, parameters: { type: 'string' } }] },
      'tools.0.parameters: expected a JSON schema of type "object"',
    ],
    ['a choice', { tool_choice: 'required' }, 'tool_choice: expected "auto", got "required"'],
  ])('are refused with %s', async (_, given, message) => {
    await expect(ask('refused', given)).rejects.toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      message: expect.stringContaining(message) as string,
    });
  });

  test('cannot change in a conversation', async () => {
    const first = await ask('one city');
    const more = { tools: [{ ...weather, description: 'other' }] };
    await expect(answered(first, 'sun', more)).rejects.toThrow(
      'tools.0: expected the tools with which the conversation has begun (weather)',
    );
    expect((await answered(first, 'sun')).output_text).toBe('It is: sun');
  });
});

describe('chat completions with tools of the client', () => {
  const tool = {
    type: 'function' as const,
    function: {
      name: 'weather',
      description: 'Tells the weather.',
      parameters: weather.parameters ?? {},
    },
  };

  test('end with calls, and the history with their results continues the run', async () => {
    const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: 'two cities' }];
    const create = () =>
      openai.chat.completions.create({ model: 'talker', messages, tools: [tool] });
    const first = await create();
    expect(first.choices[0]?.finish_reason).toBe('tool_calls');
    const said = first.choices[0]?.message;
    const calls = said?.tool_calls ?? [];
    expect(calls).toHaveLength(2);
    if (said === undefined) throw new Error('no message');
    messages.push(said);
    for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: 'sun' });
    const second = await create();
    expect(second.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: 'It is: sun and sun' },
    });
    expect((await create()).id).toBe(second.id);
    // A message after that is a new run, as for any chat.
    messages.push({ role: 'assistant', content: 'It is: sun and sun' });
    messages.push({ role: 'user', content: 'two cities' });
    expect((await create()).choices[0]?.finish_reason).toBeDefined();
    const stolen = { model: 'other', messages: messages.slice(0, 4) };
    await expect(eve.chat.completions.create(stolen)).rejects.toMatchObject({ status: 404 });
  });

  test('are streamed', async () => {
    const runner = openai.chat.completions.stream({
      model: 'talker',
      messages: [{ role: 'user', content: 'one city' }],
      tools: [tool],
    });
    const first = (await runner.finalChatCompletion()).choices[0];
    expect(first?.finish_reason).toBe('tool_calls');
    const [call] = first?.message.tool_calls ?? [];
    expect(call).toMatchObject({ function: { name: 'weather', arguments: '{"city":"Oslo"}' } });
    const next = openai.chat.completions.stream({
      model: 'talker',
      messages: [
        { role: 'user', content: 'one city' },
        { role: 'assistant', tool_calls: first?.message.tool_calls ?? [] },
        { role: 'tool', tool_call_id: call?.id ?? '', content: 'rain' },
      ],
      tools: [tool],
    });
    expect((await next.finalChatCompletion()).choices[0]?.message.content).toBe('It is: rain');
  });
});
