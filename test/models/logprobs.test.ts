import { expect, test } from 'vitest';
import { parseLogprobs } from '../../src/models/wire/content.js';
import { assembleCompletion } from '../../src/models/openai/chat/stream.js';
import { parseCompletion } from '../../src/models/openai/chat/reply.js';
import { replyCompletion } from '../../src/testing/replies.js';
import { callOnce, modelOf, source, stubWith } from './support.js';

// The form of llama.cpp: OpenAI's with ids.
const content = [
  {
    id: 32,
    token: 'A',
    bytes: [65],
    logprob: -0.1,
    top_logprobs: [
      { id: 32, token: 'A', bytes: [65], logprob: -0.1 },
      { id: 33, token: ' B', bytes: [32, 66], logprob: -2.4 },
    ],
  },
];

const read = [
  {
    token: 'A',
    logprob: -0.1,
    top: [
      { token: 'A', logprob: -0.1 },
      { token: ' B', logprob: -2.4 },
    ],
  },
];

function completion(logprobs: unknown): object {
  const message = { role: 'assistant', content: 'A' };
  return { choices: [{ index: 0, message, finish_reason: 'stop', logprobs }] };
}

test('come with the reply of a server that sends them', async () => {
  const stub = await stubWith(replyCompletion({ ...completion({ content }) }));
  expect((await callOnce(modelOf(stub))).logprobs).toEqual(read);
});

test('are assembled from the chunks of a stream', () => {
  const assembly = assembleCompletion();
  const piece = (text: string, parsed: unknown): object => ({
    choices: [{ delta: { content: text }, logprobs: parsed, finish_reason: null }],
  });
  assembly.add(piece('A', { content }));
  assembly.add(piece('', null));
  assembly.add(piece('.', { content: [{ token: '.', logprob: -1 }] }));
  assembly.add({ choices: [{ delta: {}, finish_reason: 'stop' }] });
  expect(parseCompletion(assembly.answer(), source()).logprobs).toEqual([
    ...read,
    { token: '.', logprob: -1, top: [] },
  ]);
});

test.each([undefined, null, {}, { content: null }, { content: [] }, 'x'])(
  'are absent when the server sends %j',
  (value) => {
    expect(parseCompletion(completion(value), source())).not.toHaveProperty('logprobs');
  },
);

test('are read from an object of tokens, and from slightly wrong forms', () => {
  const odd = [
    { token: 'A', logprob: 0.000001, top_logprobs: { A: -0.5, B: -1, C: null } },
    { token: 'B', logprob: null, top_logprobs: [{ token: 'B' }, 'C', { logprob: -1 }, null] },
    'text',
  ];
  expect(parseLogprobs({ content: odd })).toEqual([
    {
      token: 'A',
      logprob: 0,
      top: [
        { token: 'A', logprob: -0.5 },
        { token: 'B', logprob: -1 },
      ],
    },
    { token: 'B', logprob: -9_999, top: [] },
    { token: '', logprob: -9_999, top: [] },
  ]);
});

test('are limited in number, alternatives, and length', () => {
  const top = Array.from({ length: 50 }, (_, index) => ({ token: `${index}`, logprob: -1 }));
  const long = Array.from({ length: 400 }, () => ({
    token: 'x'.repeat(1_000),
    logprob: -1,
    top_logprobs: top,
  }));
  const parsed = parseLogprobs({ content: long });
  expect(parsed).toHaveLength(256);
  expect(parsed?.[0]?.top).toHaveLength(20);
  expect(parsed?.[0]?.token).toHaveLength(100);
});
