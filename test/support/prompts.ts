import { expect } from 'vitest';
import type { Message } from '../../src/core/transcript/messages.js';
import { createChatRequest } from '../../src/models/openai/chat/request.js';
import type { StubRequest } from '../../src/testing/wire-input.js';

/** The transcript as sent over the wire, without the system message. */
function wired(messages: readonly Message[]): readonly unknown[] {
  const request = createChatRequest(
    { model: '', instructions: 'x', messages, tools: [], toolChoice: 'auto', settings: {} },
    { stream: false },
  );
  return JSON.parse(JSON.stringify(request.messages.slice(1))) as unknown[];
}

/** Checks that every request that a model received is exactly a beginning of the transcript. */
export function expectPromptsMatch(
  requests: readonly StubRequest[],
  transcript: readonly Message[],
): void {
  const whole = wired(transcript);
  for (const request of requests) {
    const asked = request.messages.filter(({ role }) => role !== 'system');
    expect(asked).toEqual(whole.slice(0, asked.length));
  }
}

/** Checks that request k+1 begins with the bytes of request k's messages. */
export function expectStablePrefix(requests: readonly StubRequest[]): void {
  const texts = requests.map(({ body }) => JSON.stringify(body['messages']).slice(0, -1));
  for (const [index, text] of texts.entries()) {
    const next = texts[index + 1];
    if (next !== undefined && next !== text) expect(next.startsWith(text)).toBe(true);
  }
}
