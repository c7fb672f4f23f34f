import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { toAgentDefinition } from '../../src/agents/agent-definition.js';
import type { JsonObject } from '../../src/core/text/json.js';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { getCapabilities } from '../../src/models/known-models.js';
import type { ModelDelta } from '../../src/models/model.js';
import { replyComputer, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { screenshot } from '../../src/tools/built-in/artifact.js';
import { failureOf, modelOf, request, stubWith } from './support.js';

const { signal } = new AbortController();
const settings = { nativeTools: [{ type: 'computer', handler: 'screen' }] };
const tools = [
  { name: 'f', description: 'Does.', parameters: { type: 'object' } },
  { name: 'screen', description: 'Acts.', parameters: { type: 'object' } },
];
const click: JsonObject = { type: 'click', x: 1, y: 2 };
const checks: readonly JsonObject[] = [{ id: 'sc_1', code: 'c', message: 'Look.' }];
const named = (type: string) => (tool: unknown) => (tool as JsonObject)['type'] === type;

test.each([true, false])(
  'an action is emitted and returned as a call, streamed: %s',
  async (stream) => {
    const stub = await stubWith(replyComputer(click, { checks }));
    const model = modelOf(stub, { api: 'responses', stream });
    const deltas: ModelDelta[] = [];
    const result = await model.call(request({ tools, settings }), {
      signal,
      onDelta: (delta) => void deltas.push(delta),
    });
    const call = { name: 'screen', arguments: JSON.stringify(click) };
    expect(result).toMatchObject({ finish: 'calls', calls: [{ ...call, safety: checks }] });
    expect(deltas.map((delta) => (delta.kind === 'call' ? delta.text : '')).join('')).toBe(
      call.arguments,
    );
    const sent = stub.requests[0]?.body['tools'] as readonly unknown[];
    expect(sent.filter(named('function'))).toHaveLength(1);
    expect(sent.filter(named('computer'))).toEqual([{ type: 'computer' }]);
  },
);

test.each<[JsonObject, number]>([
  [{ pending_safety_checks: ['look'] }, 1],
  [{ pending_safety_checks: { id: 'sc' } }, 1],
  [{ pending_safety_checks: [null, { id: 7 }] }, 2],
  [{ pending_safety_checks: null }, 0],
  [{}, 0],
])('a safety check counts in any form: %j', async (rest, count) => {
  const items = [{ type: 'computer_call', call_id: 'c', action: click, ...rest }];
  const stub = await stubWith(replyText('', { items }));
  const result = await modelOf(stub, { api: 'responses' }).call(request({ settings }), { signal });
  expect(result.calls[0]?.safety ?? []).toHaveLength(count);
});

test('an action without a screen is a call of a tool that does not exist', async () => {
  const stub = await stubWith(replyComputer(click), replyText('Well.'));
  const model = modelOf(stub, { api: 'responses' });
  const result = await model.call(request({ tools }), { signal });
  expect(result.calls).toEqual([{ name: 'computer_use', arguments: JSON.stringify(click) }]);
  expect(result).not.toHaveProperty('provider');
});

/** The conversation after an action with checks, whose result acknowledges them or not. */
async function sentBack(acknowledged: boolean): Promise<readonly JsonObject[]> {
  const stub = await stubWith(replyComputer(click, { checks }), replyText('Done.'));
  const model = modelOf(stub, { api: 'responses' });
  const base64 = Buffer.from('89504e470d0a1a0a00', 'hex').toString('base64');
  const modelRequest = request({ tools, settings, files: async () => base64 });
  const { provider, calls } = await model.call(modelRequest, { signal });
  const messages: readonly PromptMessage[] = [
    ...modelRequest.messages,
    {
      role: 'assistant',
      text: '',
      calls: calls.map(({ name, arguments: args }) => ({
        name,
        arguments: args,
        id: 'call_1_1_0',
        digest: '',
      })),
      ...(provider && { provider }),
    },
    {
      role: 'tool',
      callId: 'call_1_1_0',
      text: '[screenshot: image/png, 9 B]',
      attachments: [{ type: 'image', blob: { sha256: 'a', bytes: 12 }, mediaType: 'image/png' }],
      ...(acknowledged && { acknowledged: true }),
    },
  ];
  await model.call({ ...modelRequest, messages }, { signal });
  return stub.requests[1]?.body['input'] as readonly JsonObject[];
}

test('checks are acknowledged only by a person', async () => {
  expect((await sentBack(true)).at(-1)).toMatchObject({
    type: 'computer_call_output',
    acknowledged_safety_checks: checks,
  });
  const otherwise = await sentBack(false);
  expect(otherwise.map(({ type }) => type)).toEqual([
    'message',
    'function_call',
    'function_call_output',
  ]);
  expect(JSON.stringify(otherwise)).not.toContain('safety_checks');
});

const item = { type: 'computer_call', call_id: 'c', action: click, pending_safety_checks: checks };
const output = { type: 'computer_call_output', call_id: 'c' };
const picture = { type: 'computer_screenshot', image_url: 'data:image/png;base64,AAAA' };
test.each<[string, readonly JsonObject[], string]>([
  ['a call without its output', [item], 'No tool output found'],
  ['an output without its call', [{ ...output, output: picture }], 'No tool call found'],
  ['an output without a screenshot', [item, { ...output, output: 'x' }], 'no screenshot'],
  [
    'checks that were not acknowledged',
    [item, { ...output, output: picture }],
    'not been acknowledged',
  ],
])('the stub refuses %s', async (_what, input, words) => {
  const stub = await stubWith(replyText('never'));
  const answer = await fetch(`${stub.baseUrl}/responses`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', input }),
  });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain(words);
});

test('a model without computer use is refused with a message', async () => {
  const stub = await stubWith();
  const modelRequest = request({ model: 'gpt-4o', tools, settings });
  const failure = await failureOf(
    modelOf(stub, { api: 'responses' }).call(modelRequest, { signal }),
  );
  expect(failure.details.kind).toBe('request');
  expect(failure.message).toContain('"gpt-4o" cannot use a computer');
  expect(stub.requestCount).toBe(0);
});

test.each([
  ['computer-use-preview', true],
  ['gpt-5.4', true],
  ['gpt-5.4-2026-03-05', true],
  ['gpt-5', false],
  ['gpt-5-mini', false],
  ['gpt-5.2', false],
  ['o3', false],
  ['gpt-4.1', false],
  ['my-own', true],
])('it is known whether %s uses computers: %s', (model, uses) => {
  expect(getCapabilities(model).computerUse).toBe(uses);
});

test('the handler may share the name of a tool; other agents are unchanged', () => {
  const screen = defineTool({
    name: 'screen',
    description: 'Acts.',
    input: z.object({}),
    effect: 'once',
    execute: () => screenshot('data:image/png;base64,iVBORw0KGgo='),
  });
  const agent = (rest: object) =>
    toAgentDefinition(
      defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [screen], ...rest }),
      { model: 'm', tools: [screen] },
    );
  const repeat = (rest: object) => agent(rest).tools.find(({ name }) => name === 'screen')?.repeat;
  expect(repeat({ settings })).toBe('allow');
  expect(repeat({})).toBeUndefined();
});

test.each<[Uint8Array | string, string]>([
  ['https://a.example/x.png', 'data:image/png;base64,'],
  [Buffer.from('<svg/>'), 'expected a PNG'],
  [Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(5_000_000)]), 'smaller'],
])('a screenshot is an image of bounded size', (given, words) => {
  expect(() => screenshot(given)).toThrow(words);
});
