import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../core/json.js';
import { messagesOfInput } from './responses-input.js';

/** How an exchange ended: answered in full, broken off by the script, by the client, or by `close()`. */
export type RequestEnd = 'answered' | 'cut' | 'client' | 'closed';

/** A message as it came; `content` and `tool_calls` are what the client sent. */
export interface StubMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: unknown;
  readonly tool_call_id?: unknown;
}

/** One request that the stub received. */
export interface StubRequest {
  /** Which of OpenAI's APIs was called. */
  readonly api: 'chat' | 'responses';
  /** From 1, in the order of arrival. */
  readonly number: number;
  /** How often exactly these bytes have come, this time included. */
  readonly attempt: number;
  /** The body as it came. */
  readonly text: string;
  /** The body parsed; an empty object where it was no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Of the Responses API: what its input items are in Chat Completions. */
  readonly messages: readonly StubMessage[];
  /** How many messages are the assistant's: the step that an answer without memory goes by. */
  readonly assistantMessages: number;
  readonly headers: IncomingHttpHeaders;
  /** Unix time in milliseconds. */
  readonly receivedAt: number;
  readonly ended: Promise<RequestEnd>;
  /** True as soon as the client has closed the connection before the answer was complete. */
  readonly closedByClient: boolean;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isMessage(value: unknown): value is StubMessage {
  return isObject(value) && typeof value['role'] === 'string';
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** A request and the end that its exchange has not reached yet. */
export interface Recorded {
  readonly request: StubRequest;
  readonly end: (how: RequestEnd) => void;
}

export function recordRequest(
  text: string,
  place: {
    readonly api: 'chat' | 'responses';
    readonly number: number;
    readonly attempt: number;
    readonly headers: IncomingHttpHeaders;
  },
): Recorded {
  const body = parse(text);
  const messages =
    place.api === 'responses' ? messagesOfInput(body) : listOf(body['messages']).filter(isMessage);
  let closedByClient = false;
  let settle: ((how: RequestEnd) => void) | undefined;
  const ended = new Promise<RequestEnd>((resolve) => {
    settle = resolve;
  });
  return {
    request: {
      ...place,
      text,
      body,
      messages,
      assistantMessages: messages.filter((message) => message.role === 'assistant').length,
      receivedAt: Date.now(),
      ended,
      get closedByClient() {
        return closedByClient;
      },
    },
    end(how) {
      closedByClient = how === 'client';
      settle?.(how);
    },
  };
}

/** The text of the first user message: what a conversation's queue is found by. */
export function firstUserText(request: StubRequest): string {
  const content = request.messages.find((message) => message.role === 'user')?.content;
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}
