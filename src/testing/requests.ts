import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../core/json.js';
import { toChatMessages } from './messages-input.js';
import { toMessages } from './responses-input.js';
import type { StubMessage } from './stub-message.js';

/** How an exchange ended: answered in full, or cut by the script, the client, or `close()`. */
export type RequestEnd = 'answered' | 'cut' | 'client' | 'closed';

/** An API that the stub speaks. */
export type StubApi = 'chat' | 'responses' | 'messages';

/** One request that the stub received. */
export interface StubRequest {
  /** The API that was called: one of OpenAI's, or `messages` of Anthropic. */
  readonly api: StubApi;
  /** Counted from 1, in the order of arrival. */
  readonly number: number;
  /** How many requests with exactly these bytes have arrived, including this one. */
  readonly attempt: number;
  /** The body as text. */
  readonly text: string;
  /** The parsed body; an empty object if it is not a JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The messages; for the other APIs, as messages of Chat Completions. */
  readonly messages: readonly StubMessage[];
  /** The number of assistant messages, by which a stateless answer finds its step. */
  readonly assistantMessages: number;
  readonly headers: IncomingHttpHeaders;
  /** Unix time in milliseconds. */
  readonly receivedAt: number;
  readonly ended: Promise<RequestEnd>;
  /** True once the client has closed the connection before the answer was complete. */
  readonly closedByClient: boolean;
}

/** A request, and the function that ends its exchange. */
export interface Recorded {
  readonly request: StubRequest;
  readonly end: (reason: RequestEnd) => void;
}

export function recordRequest(
  text: string,
  place: {
    readonly api: StubApi;
    readonly number: number;
    readonly attempt: number;
    readonly headers: IncomingHttpHeaders;
  },
): Recorded {
  const body = parse(text);
  const messages = READERS[place.api](body);
  let closedByClient = false;
  let resolveEnd: ((reason: RequestEnd) => void) | undefined;
  const ended = new Promise<RequestEnd>((resolve) => {
    resolveEnd = resolve;
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
    end(reason) {
      closedByClient = reason === 'client';
      resolveEnd?.(reason);
    },
  };
}

const READERS: Readonly<
  Record<StubApi, (body: Readonly<Record<string, unknown>>) => readonly StubMessage[]>
> = {
  chat: (body) => toList(body['messages']).filter(isMessage),
  responses: toMessages,
  messages: toChatMessages,
};

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isMessage(value: unknown): value is StubMessage {
  return isObject(value) && typeof value['role'] === 'string';
}

/** Returns the text of the first user message, by which the queue of a conversation is found. */
export function getFirstUserText(request: StubRequest): string {
  const content = request.messages.find((message) => message.role === 'user')?.content;
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}
