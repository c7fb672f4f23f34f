import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../core/text/json.js';

/** A message as the client sent it. */
export interface StubMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: unknown;
  readonly tool_call_id?: unknown;
}

type AnyObject = Readonly<Record<string, unknown>>;

/** Returns the messages of a request to Anthropic's API as messages of Chat Completions. */
function toChatMessages(body: AnyObject): readonly StubMessage[] {
  return listObjects(body['messages']).flatMap((message): readonly StubMessage[] => {
    const blocks = listBlocks(message);
    const text = joinText(blocks);
    if (message['role'] === 'assistant') {
      const calls = blocks.filter(({ type }) => type === 'tool_use').map(toCall);
      return [{ role: 'assistant', content: text, ...(calls.length > 0 && { tool_calls: calls }) }];
    }
    const results = blocks.filter(({ type }) => type === 'tool_result').map(toResult);
    const hasOther = blocks.some(({ type }) => type !== 'tool_result');
    return [...results, ...(hasOther ? [{ role: 'user', content: text }] : [])];
  });
}

/** Returns the blocks of a message; a text counts as one. */
export function listBlocks({ content }: AnyObject): readonly AnyObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : listObjects(content);
}

export function listObjects(value: unknown): readonly AnyObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function joinText(blocks: readonly AnyObject[]): string {
  return blocks.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}

function toCall({ id, name, input }: AnyObject): AnyObject {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

function toResult(block: AnyObject): StubMessage {
  return { role: 'tool', tool_call_id: block['tool_use_id'], content: joinText(listBlocks(block)) };
}

type Item = Record<string, unknown>;

const OUTPUTS: readonly unknown[] = ['function_call_output', 'computer_call_output'];

/** Lists the input items of a request to the Responses API. */
export function listItems({ input }: Readonly<Record<string, unknown>>): readonly Item[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  return Array.isArray(input) ? input.filter(isObject) : [];
}

/** Converts instructions and items to messages of Chat Completions. */
function toMessages(body: Readonly<Record<string, unknown>>): readonly StubMessage[] {
  const messages: StubMessage[] = [];
  let own: Item[] = [];
  const flush = (): void => {
    if (own.length > 0) messages.push(toAssistantMessage(own));
    own = [];
  };
  const { instructions } = body;
  if (typeof instructions === 'string') messages.push({ role: 'system', content: instructions });
  for (const item of listItems(body)) {
    if (!isInput(item)) {
      own.push(item);
      continue;
    }
    flush();
    messages.push(toInputMessage(item));
  }
  flush();
  return messages;
}

/** Converts the consecutive items of an assistant to one message. */
function toAssistantMessage(items: readonly Item[]): StubMessage {
  const texts = items
    .filter(({ type }) => type === 'message')
    .map(({ content }) => joinParts(content));
  const calls = items
    .filter(({ type }) => type === 'function_call' || type === 'computer_call')
    .map(toChatCall);
  return {
    role: 'assistant',
    content: texts.length === 0 ? null : texts.join(''),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function joinParts(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  const parts = content.filter(isObject);
  const isText = parts.every(({ type }) => type === 'output_text' || type === 'input_text');
  return isText ? parts.map(({ text }) => text).join('') : content;
}

function toChatCall({ type, call_id: id, name, arguments: text, action, actions }: Item): unknown {
  if (type === 'computer_call') {
    const args = JSON.stringify(action ?? { actions });
    return { id, type: 'function', function: { name: 'computer', arguments: args } };
  }
  return { id, type: 'function', function: { name, arguments: text } };
}

function isInput({ type, role }: Item): boolean {
  return OUTPUTS.includes(type) || (role !== undefined && role !== 'assistant');
}

function toInputMessage({ type, role, content, call_id: id, output }: Item): StubMessage {
  if (OUTPUTS.includes(type)) return { role: 'tool', tool_call_id: id, content: output };
  return { role: String(role), content: joinParts(content) };
}

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
interface Recorded {
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

export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
