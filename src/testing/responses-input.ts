import { isObject } from '../core/json.js';
import type { StubMessage } from './stub-message.js';

type Item = Record<string, unknown>;

const OUTPUTS: readonly unknown[] = ['function_call_output', 'computer_call_output'];

/** Lists the input items of a request to the Responses API. */
export function listItems({ input }: Readonly<Record<string, unknown>>): readonly Item[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  return Array.isArray(input) ? input.filter(isObject) : [];
}

/** Converts instructions and items to messages of Chat Completions. */
export function toMessages(body: Readonly<Record<string, unknown>>): readonly StubMessage[] {
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
    .map(({ content }) => joinText(content));
  const calls = items
    .filter(({ type }) => type === 'function_call' || type === 'computer_call')
    .map(toChatCall);
  return {
    role: 'assistant',
    content: texts.length === 0 ? null : texts.join(''),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function joinText(content: unknown): unknown {
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
  return { role: String(role), content: joinText(content) };
}
