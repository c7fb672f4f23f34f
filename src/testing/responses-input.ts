import { isObject } from '../core/json.js';
import type { StubMessage } from './requests.js';

type Item = Record<string, unknown>;

function textOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  const parts = content.filter(isObject);
  const isText = parts.every(({ type }) => type === 'output_text' || type === 'input_text');
  return isText ? parts.map(({ text }) => text).join('') : content;
}

function wireCall({ type, call_id: id, name, arguments: args, action, actions }: Item): unknown {
  if (type === 'computer_call') {
    const said = JSON.stringify(action ?? { actions });
    return { id, type: 'function', function: { name: 'computer', arguments: said } };
  }
  return { id, type: 'function', function: { name, arguments: args } };
}

/** What an assistant said in one go: items up to the next one of somebody else. */
function assistant(items: readonly Item[]): StubMessage {
  const said = items.filter(({ type }) => type === 'message').map(({ content }) => textOf(content));
  const calls = items
    .filter(({ type }) => type === 'function_call' || type === 'computer_call')
    .map(wireCall);
  return {
    role: 'assistant',
    content: said.length === 0 ? null : said.join(''),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

const OUTPUTS: readonly unknown[] = ['function_call_output', 'computer_call_output'];

function isOther({ type, role }: Item): boolean {
  return OUTPUTS.includes(type) || (role !== undefined && role !== 'assistant');
}

function other({ type, role, content, call_id: id, output }: Item): StubMessage {
  if (OUTPUTS.includes(type)) return { role: 'tool', tool_call_id: id, content: output };
  return { role: String(role), content: textOf(content) };
}

/** The items of a request to the Responses API. */
export function itemsOf({ input }: Readonly<Record<string, unknown>>): readonly Item[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  return Array.isArray(input) ? input.filter(isObject) : [];
}

/** Instructions and items as the messages that they would be in Chat Completions. */
export function messagesOfInput(body: Readonly<Record<string, unknown>>): readonly StubMessage[] {
  const messages: StubMessage[] = [];
  let own: Item[] = [];
  const endOwn = (): void => {
    if (own.length > 0) messages.push(assistant(own));
    own = [];
  };
  const { instructions } = body;
  if (typeof instructions === 'string') messages.push({ role: 'system', content: instructions });
  for (const item of itemsOf(body)) {
    if (!isOther(item)) {
      own.push(item);
      continue;
    }
    endOwn();
    messages.push(other(item));
  }
  endOwn();
  return messages;
}
