import type { WireMessage } from './messages.js';

/** What the model is taken to have said where results of tools were followed by a person's message. */
const BRIDGE = 'Understood.';

type UserContent = Extract<WireMessage, { role: 'user' }>['content'];

function joined(first: UserContent, second: UserContent): UserContent {
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`;
  const parts = (content: UserContent) =>
    typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
  return [...parts(first), ...parts(second)];
}

/** The message in place of these two, or those that stand in their place. */
function inTurn(before: WireMessage, message: WireMessage): readonly WireMessage[] {
  if (before.role === 'user' && message.role === 'user') {
    return [{ role: 'user', content: joined(before.content, message.content) }];
  }
  if (before.role === 'tool' && message.role === 'user') {
    return [before, { role: 'assistant', content: BRIDGE }, message];
  }
  if (before.role === 'assistant' && message.role === 'assistant' && !before.tool_calls) {
    const texts = [before.content, message.content].filter((text) => text !== null && text !== '');
    return [{ ...message, content: texts.length === 0 ? null : texts.join('\n\n') }];
  }
  return [before, message];
}

/**
 * The same for servers that insist on people and model in turn: what a person says in several
 * messages becomes one, and so does what the model says; between results and a person's message the
 * model is given a word. The beginning stays byte for byte up to a message that another one joins.
 */
export function alternating(messages: readonly WireMessage[]): readonly WireMessage[] {
  const ordered: WireMessage[] = [];
  for (const message of messages) {
    const before = ordered.pop();
    ordered.push(...(before === undefined ? [message] : inTurn(before, message)));
  }
  return ordered;
}
