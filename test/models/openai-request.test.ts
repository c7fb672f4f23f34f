import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { createChatRequest } from '../../src/models/openai/chat/request.js';
import { assistantCalls, request } from './support.js';
import { anyString } from '../support/any-string.js';

const tool = { name: 'read_file', description: 'Reads.', parameters: { type: 'object' } };

test('writes instructions, messages, calls, and results in the wire format', () => {
  const wire = createChatRequest(
    request({
      messages: [
        { role: 'user', text: 'read a' },
        assistantCalls({ id: 'call_1_1_0', name: 'read_file', arguments: '{"path":"a"}' }),
        { role: 'tool', text: 'contents', callId: 'call_1_1_0' },
        { role: 'assistant', text: 'done' },
      ],
    }),
    { stream: false },
  );
  expect(wire).toEqual({
    model: 'stub',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'read a' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_1_1_0',
            type: 'function',
            function: { name: 'read_file', arguments: '{"path":"a"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1_1_0', content: 'contents' },
      { role: 'assistant', content: 'done' },
    ],
  });
});

test('keeps the text that came with calls', () => {
  const message: PromptMessage = {
    role: 'assistant',
    text: 'I look.',
    calls: [{ id: 'c', name: 'f', arguments: '{}', digest: '' }],
  };
  const wire = createChatRequest(request({ messages: [message] }), { stream: false });
  expect(wire.messages[1]).toMatchObject({ content: 'I look.', tool_calls: [{ id: 'c' }] });
});

test('sends tools in the given order, and the choice only with tools', () => {
  const other = { ...tool, name: 'a_tool' };
  const wire = createChatRequest(request({ tools: [tool, other], toolChoice: 'none' }), {
    stream: false,
  });
  expect(wire.tools).toEqual([
    { type: 'function', function: tool },
    { type: 'function', function: other },
  ]);
  expect(wire.tool_choice).toBe('none');
  const without = createChatRequest(request({ toolChoice: 'required' }), { stream: false });
  expect(without).not.toHaveProperty('tools');
  expect(without).not.toHaveProperty('tool_choice');
});

test('passes settings through, renames the output limit, and lets no setting replace a field', () => {
  const wire = createChatRequest(
    request({
      settings: {
        temperature: 0.2,
        maxOutputTokens: 50,
        reasoning_effort: 'low',
        logit_bias: { 5: 1 },
        model: 'other',
        messages: [],
      },
    }),
    { stream: false },
  );
  expect(wire).toMatchObject({
    model: 'stub',
    temperature: 0.2,
    max_completion_tokens: 50,
    reasoning_effort: 'low',
    logit_bias: { 5: 1 },
  });
  expect(wire.messages).toHaveLength(2);
  expect(wire).not.toHaveProperty('maxOutputTokens');
});

test('requests usage with a stream', () => {
  expect(createChatRequest(request(), { stream: true })).toMatchObject({
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(createChatRequest(request(), { stream: false })).not.toHaveProperty('stream');
});

const someText = anyString();
const someMessage: fc.Arbitrary<PromptMessage> = fc.oneof(
  fc.record({ role: fc.constant('user' as const), text: someText }),
  fc.record({ role: fc.constant('tool' as const), text: someText, callId: someText }),
  fc.record({
    role: fc.constant('assistant' as const),
    text: someText,
    calls: fc.array(
      fc.record({ id: someText, name: someText, arguments: fc.json(), digest: someText }),
      { maxLength: 3 },
    ),
  }),
);

function bytesOf(messages: readonly PromptMessage[]): string {
  return JSON.stringify(createChatRequest(request({ messages }), { stream: false }).messages);
}

test('begins each longer request with the bytes of the shorter one', () => {
  fc.assert(
    fc.property(
      fc.array(someMessage),
      fc.array(someMessage, { minLength: 1 }),
      (earlier, later) => {
        const before = bytesOf(structuredClone(earlier));
        const after = bytesOf([...earlier, ...later]);
        // An assistant message without text and calls adds nothing.
        expect(after === before || after.startsWith(`${before.slice(0, -1)},`)).toBe(true);
      },
    ),
  );
});

test('gives equal bytes for equal requests', () => {
  fc.assert(
    fc.property(fc.array(someMessage), (messages) => {
      const whole = request({ messages, tools: [tool] });
      const bytes = JSON.stringify(createChatRequest(whole, { stream: true }));
      expect(JSON.stringify(createChatRequest(structuredClone(whole), { stream: true }))).toBe(
        bytes,
      );
    }),
  );
});
