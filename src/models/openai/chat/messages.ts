import type { PromptMessage } from '../../../core/transcript/messages.js';
import type { RoleOrder, SystemRole } from '../../capabilities.js';
import { createPart, type AttachedData, type ContentPart } from '../../wire/attachment-parts.js';
import type { Replay } from '../../wire/replayed-items.js';
import { alternateRoles } from './alternate-roles.js';
import type { ChatCall, ChatMessage } from './chat-message.js';
import { getProviderFields } from './provider-fields.js';

interface References {
  readonly data: AttachedData;
  readonly replay: Replay;
}

/** Writes instructions and messages for Chat Completions. */
export function createChatMessages(
  prompt: { readonly instructions: string; readonly messages: readonly PromptMessage[] },
  options: { readonly role: SystemRole; readonly order: RoleOrder } & References,
): readonly ChatMessage[] {
  const { role, order } = options;
  const written = prompt.messages.map((message) => createMessage(message, options));
  const messages = order === 'alternating' ? alternateRoles(written) : written;
  if (role === 'user') return prependInstructions(prompt.instructions, messages);
  return [{ role, content: prompt.instructions }, ...messages];
}

function createMessage(message: PromptMessage, { data, replay }: References): ChatMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: createUserContent(message, data) };
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.text };
    case 'assistant': {
      const fields = getProviderFields(message, replay);
      const calls = (message.calls ?? []).map((call, index): ChatCall => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
        ...fields.calls.get(index),
      }));
      if (calls.length === 0) return { role: 'assistant', content: message.text };
      return {
        role: 'assistant',
        content: message.text === '' ? null : message.text,
        ...fields.message,
        tool_calls: calls,
      };
    }
  }
}

function createUserContent(
  { text, attachments = [] }: Extract<PromptMessage, { role: 'user' }>,
  data: AttachedData,
): string | readonly ContentPart[] {
  if (attachments.length === 0) return text;
  const words: readonly ContentPart[] = text === '' ? [] : [{ type: 'text', text }];
  return [...words, ...attachments.map((attachment) => createPart(attachment, data))];
}

/**
 * Adds the instructions to the first message. Chat templates without a system role usually require
 * alternating roles, so both become one message.
 */
function prependInstructions(
  instructions: string,
  [first, ...rest]: readonly ChatMessage[],
): readonly ChatMessage[] {
  if (first?.role !== 'user') {
    const own: ChatMessage = { role: 'user', content: instructions };
    return first === undefined ? [own] : [own, first, ...rest];
  }
  const content =
    typeof first.content === 'string'
      ? `${instructions}\n\n${first.content}`
      : [{ type: 'text' as const, text: instructions }, ...first.content];
  return [{ role: 'user', content }, ...rest];
}
