import { failureOf } from '../../core/calls/call-result.js';
import { CLOSING_INSTRUCTION } from '../../core/compose.js';
import { parseDocumentKey } from '../../core/documents.js';
import type { PromptMessage } from '../../core/transcript/messages.js';

/** The part of a prompt that the demo model uses. */
export interface DemoConversation {
  /** The last message of a person; empty if there is none. */
  readonly question: string;
  /** The calls made since that message, in order. */
  readonly calls: readonly FinishedCall[];
}

export interface FinishedCall {
  readonly tool: string;
  /** False if the tool failed or was not executed; `text` is then the message of the error. */
  readonly ok: boolean;
  readonly text: string;
}

export function readConversation(messages: readonly PromptMessage[]): DemoConversation {
  const start = messages.findLastIndex(isQuestion);
  const turn = messages.slice(start + 1);
  const tools = new Map(
    turn.flatMap((message) =>
      message.role === 'assistant'
        ? (message.calls ?? []).map(({ id, name }) => [id, name] as const)
        : [],
    ),
  );
  const calls = turn.flatMap((message) => {
    const tool = message.role === 'tool' ? tools.get(message.callId) : undefined;
    if (message.role !== 'tool' || tool === undefined) return [];
    const failure = failureOf(message);
    return [{ tool, ok: failure === null, text: failure?.message ?? message.text }];
  });
  return { question: messages[start]?.text ?? '', calls };
}

/**
 * Whether a message is a question. The closing instruction and retrieved documents are also user
 * messages, but ask nothing.
 */
function isQuestion({ role, text }: PromptMessage): boolean {
  return role === 'user' && text !== CLOSING_INSTRUCTION && parseDocumentKey(text) === null;
}
