import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ModelReply, ModelError } from '../../src/models/model.js';
import { parseReply as parse } from '../../src/models/wire/answer.js';
import { chatApi } from '../../src/models/openai/chat/index.js';
import { parseCompletion } from '../../src/models/openai/chat/reply.js';
import { source, thrownBy } from './support.js';
import { anyString } from '../support/any-string.js';

function parseReply(text: string, from: ReturnType<typeof source>) {
  return parse(text, from, chatApi);
}

function completion(
  message: object | null,
  rest: { finish?: unknown; usage?: unknown } = {},
): object {
  const { finish = 'stop', ...others } = rest;
  return { choices: [{ index: 0, message, finish_reason: finish }], ...others };
}

function nested(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels));
}

function wireCall(name: unknown, args: unknown, id: unknown = 'x'): object {
  return { id, type: 'function', function: { name, arguments: args } };
}

function parsed(message: object, rest: { finish?: unknown; usage?: unknown } = {}) {
  return parseCompletion(completion(message, rest), source());
}

test('reads text, usage, and the request id', () => {
  const usage = {
    prompt_tokens: 20,
    completion_tokens: 4,
    prompt_tokens_details: { cached_tokens: 16 },
  };
  const value = completion({ content: 'hi', annotations: [1] }, { usage });
  expect(parseCompletion(value, source({ 'x-request-id': 'req_1' }))).toEqual({
    text: 'hi',
    calls: [],
    finish: 'stop',
    usage: { inputTokens: 20, outputTokens: 4, cachedTokens: 16 },
    requestId: 'req_1',
  });
});

test.each([
  ['absent', undefined],
  ['null', null],
  ['without counts', { total_tokens: 3 }],
  ['with counts that are none', { prompt_tokens: -1, completion_tokens: 'x' }],
])('leaves usage out if it is %s', (_name, usage) => {
  expect(parsed({ content: 'hi' }, { usage })).not.toHaveProperty('usage');
});

test('never counts more cached tokens than input tokens', () => {
  const usage = {
    prompt_tokens: 5,
    completion_tokens: 1,
    prompt_tokens_details: { cached_tokens: 9 },
  };
  expect(parsed({ content: 'x' }, { usage }).usage?.cachedTokens).toBe(5);
});

test.each([
  ['missing ids', [wireCall('f', '{}', undefined), wireCall('g', '{}', undefined)]],
  ['duplicate ids', [wireCall('f', '{}', 'same'), wireCall('g', '{}', 'same')]],
  ['unknown fields', [{ ...wireCall('f', '{}'), extra: 1 }, wireCall('g', '{}')]],
])('keeps calls with %s, in order', (_name, calls) => {
  expect(parsed({ content: null, tool_calls: calls }, { finish: 'tool_calls' })).toMatchObject({
    text: '',
    calls: [{ name: 'f' }, { name: 'g' }],
    finish: 'calls',
  });
});

test.each([
  ['text that is not JSON, unchanged', '{"a":', '{"a":'],
  ['an object', { a: [1] }, '{"a":[1]}'],
  ['an array', [1], '[1]'],
  ['a number', 7, '7'],
  ['null', null, '{}'],
  ['nothing', undefined, '{}'],
  ['an empty text', '', '{}'],
  ['too deep to serialize', nested(20_000), '[nested too deeply]'],
])('reads arguments that are %s', (_name, args, expected) => {
  const { calls } = parsed({ tool_calls: [wireCall('f', args)] });
  expect(calls).toEqual([{ name: 'f', arguments: expected }]);
});

test.each([
  ['stop although there are calls', 'stop'],
  ['null', null],
  ['a nonstandard word', 'eos'],
])('reads calls if the finish reason is %s', (_name, finish) => {
  expect(parsed({ tool_calls: [wireCall('f', '{}')] }, { finish }).finish).toBe('calls');
});

test.each([
  ['null', null],
  ['tool_calls, but there are none', 'tool_calls'],
  ['a nonstandard word', 'eos'],
])('reads text as an answer if the finish reason is %s', (_name, finish) => {
  expect(parsed({ content: 'hi', tool_calls: null }, { finish }).finish).toBe('stop');
});

test('joins content that comes in parts', () => {
  const content = [{ type: 'text', text: 'a' }, { type: 'image' }, 'b', null, { text: 'c' }];
  expect(parsed({ content }).text).toBe('abc');
});

test('treats a refusal as an outcome, and drops its calls', () => {
  const message = { content: null, refusal: 'I will not.', tool_calls: [wireCall('f', '{}')] };
  expect(parsed(message)).toMatchObject({ text: 'I will not.', calls: [], finish: 'refused' });
  expect(parsed({ content: 'hi', refusal: '' }).finish).toBe('stop');
});

test('treats a content filter as an outcome, and drops its calls', () => {
  const message = { content: 'par', tool_calls: [wireCall('f', '{"a"')] };
  expect(parsed(message, { finish: 'content_filter' })).toMatchObject({
    text: 'par',
    calls: [],
    finish: 'filtered',
  });
});

test('reports that the output limit truncated text or calls', () => {
  expect(parsed({ content: 'par' }, { finish: 'length' }).finish).toBe('length');
  expect(parsed({ content: null }, { finish: 'length' })).toMatchObject({ text: '' });
  const cut = parsed({ tool_calls: [wireCall('f', '{"a"')] }, { finish: 'length' });
  expect(cut).toMatchObject({ finish: 'length', calls: [{ name: 'f', arguments: '{"a"' }] });
});

test.each([
  ['null content', { content: null }],
  ['empty content', { content: '' }],
  ['no content', {}],
  ['an empty list of calls', { content: null, tool_calls: [] }],
  ['parts without text', { content: [{ type: 'reasoning' }] }],
])('treats a reply with %s as empty', (_name, message) => {
  const { details } = thrownBy(() => parsed(message));
  expect(details).toEqual({ kind: 'empty', type: 'empty_reply' });
});

test.each([
  ['no choices', {}, 'retry', 'no_answer'],
  ['a usage alone', { usage: { prompt_tokens: 1 } }, 'malformed', 'empty_choices'],
  ['empty choices', { choices: [] }, 'malformed', 'empty_choices'],
  ['choices that are not a list', { choices: { 0: {} } }, 'retry', 'no_answer'],
  ['a choice without a message', { choices: [{ index: 0 }] }, 'malformed', 'no_message'],
  ['a null message', completion(null), 'malformed', 'no_message'],
  [
    'a call without a name',
    completion({ tool_calls: [wireCall(undefined, '{}')] }),
    'malformed',
    'bad_call',
  ],
  ['a call that is null', completion({ tool_calls: [null] }), 'malformed', 'bad_call'],
  [
    'an error for a finish',
    completion({ content: 'x' }, { finish: 'error' }),
    'retry',
    'finish_error',
  ],
  ['null', null, 'retry', 'no_answer'],
  ['a text', 'hello', 'retry', 'no_answer'],
])(
  'never reads %s as an answer, and retries only a few times what was paid for',
  (_name, value, kind, type) => {
    const { details } = thrownBy(() => parseCompletion(value, source({ 'x-request-id': 'r' })));
    expect(details).toEqual({ kind, type, requestId: 'r' });
  },
);

test.each([
  ['a page', '<!doctype html><title>Gateway</title>', 'html'],
  ['half a JSON', '{"choices":[{"message":{"content":"he', 'bad_json'],
  ['nothing', '', 'bad_json'],
  ['words', 'upstream createClient error', 'bad_json'],
])('never reads %s as an answer, and shows a sample', (_name, text, type) => {
  const { details, message } = thrownBy(() => parseReply(text, source()));
  expect(details).toEqual({ kind: 'retry', type });
  expect(message).toContain(text.slice(0, 20));
});

test('truncates the sample to 300 characters', () => {
  const { message } = thrownBy(() => parseReply(`<${'x'.repeat(5000)}`, source()));
  expect(message).toMatch(/: <x{298}…$/);
});

test('reads an error that arrives with status 200', () => {
  const limited = thrownBy(() => parseReply('{"error":{"code":429,"message":"slow"}}', source()));
  expect(limited.details).toMatchObject({ kind: 'retry', type: 'rate_limit', status: 429 });
  const spent = thrownBy(() => parseReply('{"error":{"code":"insufficient_quota"}}', source()));
  expect(spent.details.kind).toBe('quota');
});

const wireLike = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    fc.constantFrom(null, '', 'x', 'stop', 'length', 'tool_calls', 'content_filter', 0, 1, true),
    fc.jsonValue(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom(
        'choices',
        'message',
        'content',
        'tool_calls',
        'function',
        'name',
        'arguments',
        'finish_reason',
        'refusal',
        'usage',
        'error',
        'text',
        '__proto__',
      ),
      tie('value'),
    ),
  ),
}));

/** Like the above, but always deep enough to reach the calls. */
const callLike = wireLike.value.chain((value) =>
  fc.record({
    choices: fc.tuple(
      fc.record({
        message: fc.record({
          content: wireLike.value,
          tool_calls: fc.array(
            fc.oneof(
              fc.record({ function: fc.record({ name: fc.string(), arguments: wireLike.value }) }),
              fc.constant(value),
            ),
          ),
        }),
        finish_reason: wireLike.value,
      }),
    ),
  }),
);

/** Returns the reply; undefined for a `ModelError`. Rethrows any other error. */
function replyTo(text: string): ModelReply | undefined {
  try {
    return parseReply(text, source());
  } catch (error) {
    if (error instanceof ModelError) return undefined;
    throw error;
  }
}

test('throws only ModelError for any JSON, and returns arguments as text', () => {
  let calls = 0;
  fc.assert(
    fc.property(fc.oneof(wireLike.value, callLike, fc.jsonValue()), (value) => {
      const reply = replyTo(JSON.stringify(value));
      calls += reply?.calls.length ?? 0;
      const texts = (reply?.calls ?? []).flatMap((call) => [call.name, call.arguments]);
      expect([reply?.text ?? '', ...texts].every((text) => typeof text === 'string')).toBe(true);
    }),
    { numRuns: 500 },
  );
  expect(calls).toBeGreaterThan(0);
});

test('throws only ModelError for any text', () => {
  fc.assert(
    fc.property(anyString(), (text) => {
      expect(() => parseReply(text, source())).toThrow(ModelError);
    }),
  );
});

test('reads a legacy call, a call without its inner object, and each call of several choices once', () => {
  const old = { content: null, function_call: { name: 'f', arguments: '{"a":1}' } };
  expect(parsed(old).calls).toEqual([{ name: 'f', arguments: '{"a":1}' }]);
  const flat = { tool_calls: [{ id: 'x', name: 'f', arguments: { a: 1 } }] };
  expect(parsed(flat).calls).toEqual([{ name: 'f', arguments: '{"a":1}' }]);
  const choices = [
    { message: { content: 'I look.' }, finish_reason: 'stop' },
    { message: { content: null, tool_calls: [wireCall('f', '{"a":1}')] } },
    { message: { tool_calls: [wireCall('f', '{"a":1}'), wireCall('g', null, 'y')] } },
  ];
  const { text, calls, finish } = parseCompletion({ choices }, source());
  expect({ text, finish }).toEqual({ text: 'I look.', finish: 'calls' });
  expect(calls).toEqual([
    { name: 'f', arguments: '{"a":1}' },
    { name: 'g', arguments: '{}' },
  ]);
});

test('reads several choices as filtered if one of them is', () => {
  const choices = [
    { message: { tool_calls: [wireCall('f', '{}')] }, finish_reason: 'tool_calls' },
    { message: { content: 'half' }, finish_reason: 'content_filter' },
  ];
  expect(parseCompletion({ choices }, source())).toMatchObject({ finish: 'filtered', calls: [] });
});
