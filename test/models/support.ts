import { onTestFinished } from 'vitest';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import {
  type Model,
  type ModelReply,
  type ModelRequest,
  isModelError,
  ModelError,
} from '../../src/models/model.js';
import { openAiModel, type OpenAiModelOptions } from '../../src/models/openai/model.js';
import type { ReplyPlace, ReplySource } from '../../src/models/wire/api.js';
import type { Reply } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';

export function request(rest: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'stub',
    instructions: 'Be brief.',
    messages: [{ role: 'user', text: 'hello' }],
    tools: [],
    toolChoice: 'auto',
    settings: {},
    ...rest,
  };
}

/** Creates an assistant message with calls. */
export function assistantCalls(
  ...calls: readonly { id: string; name: string; arguments: string }[]
): PromptMessage {
  return { role: 'assistant', text: '', calls: calls.map((call) => ({ ...call, digest: '' })) };
}

export const place: ReplyPlace = {
  baseUrl: 'http://provider/v1',
  model: 'stub',
  hasKey: true,
  apiKeyEnv: 'OPENAI_API_KEY',
  now: () => Date.parse('2026-11-20T10:00:00Z'),
};

export function source(headers: Record<string, string> = {}): ReplySource {
  return { headers: new Headers(headers), place };
}

export async function stubWith(...steps: readonly Reply[]): Promise<Stub> {
  const stub = await startStub();
  onTestFinished(() => stub.close());
  stub.script(...steps);
  return stub;
}

export function modelOf(stub: Stub, options: OpenAiModelOptions = {}): Model {
  return openAiModel({ apiKey: 'canary-key-1234', baseUrl: stub.baseUrl, ...options });
}

export async function callOnce(
  model: Model,
  signal = new AbortController().signal,
): Promise<ModelReply> {
  return await model.call(request(), { signal });
}

/** Returns the `ModelError` that a call rejects with; throws if it does anything else. */
export async function failureOf(reply: Promise<unknown>): Promise<ModelError> {
  const outcome = await reply.catch((error: unknown) => error);
  if (isModelError(outcome)) return outcome;
  throw new Error('expected a ModelError', { cause: outcome });
}

/** Like `failureOf`, for a synchronous function. */
export function thrownBy(action: () => unknown): ModelError {
  try {
    action();
  } catch (error) {
    if (error instanceof ModelError) return error;
    throw error;
  }
  throw new Error('expected a ModelError, nothing was thrown');
}
