import { isObject } from '../core/json.js';
import type { StubMessage } from './stub-message.js';

type AnyObject = Readonly<Record<string, unknown>>;

/** Returns the messages of a request to Anthropic's API as messages of Chat Completions. */
export function toChatMessages(body: AnyObject): readonly StubMessage[] {
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
