import type { ChatMessage } from './chat-message.js';

/**
 * Returns the messages for servers that require user and assistant to alternate. Consecutive
 * messages of one role become one; a short assistant text is inserted between tool results and a
 * user message. The beginning stays byte-for-byte the same, up to the first joined message.
 */
export function alternateRoles(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const ordered: ChatMessage[] = [];
  for (const message of messages) {
    const previous = ordered.pop();
    ordered.push(...(previous === undefined ? [message] : alternatePair(previous, message)));
  }
  return ordered;
}

/** The assistant's text between tool results and a user message. */
const BRIDGE = 'Understood.';

/** Returns the messages that replace these two. */
function alternatePair(previous: ChatMessage, message: ChatMessage): readonly ChatMessage[] {
  if (previous.role === 'user' && message.role === 'user') {
    return [{ role: 'user', content: joinContent(previous.content, message.content) }];
  }
  if (previous.role === 'tool' && message.role === 'user') {
    return [previous, { role: 'assistant', content: BRIDGE }, message];
  }
  if (previous.role === 'assistant' && message.role === 'assistant' && !previous.tool_calls) {
    const texts = [previous.content ?? '', message.content ?? ''].filter((text) => text !== '');
    return texts.length === 0 ? [message] : [{ ...message, content: texts.join('\n\n') }];
  }
  return [previous, message];
}

type UserContent = Extract<ChatMessage, { role: 'user' }>['content'];

function joinContent(first: UserContent, second: UserContent): UserContent {
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`;
  const toParts = (content: UserContent) =>
    typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
  return [...toParts(first), ...toParts(second)];
}
