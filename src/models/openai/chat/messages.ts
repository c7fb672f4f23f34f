import type { JsonObject } from '../../../core/json.js';
import type { PromptMessage } from '../../../core/transcript/messages.js';
import { attachedPart, type AttachedData, type WirePart } from '../../attachments.js';
import type { RoleOrder, SystemRole } from '../../capabilities.js';
import { echoesOf } from '../provider-fields.js';
import { alternating } from './alternate-roles.js';
import type { Returning } from '../replayed-items.js';

interface WireCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
  readonly extra_content?: JsonObject;
}

/** A message as Chat Completions takes it. */
export type WireMessage =
  | { readonly role: 'system' | 'developer'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly WirePart[] }
  | {
      readonly role: 'assistant';
      readonly content: string | null;
      readonly reasoning_content?: string;
      readonly tool_calls?: readonly WireCall[];
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

function userContent(
  { text, attachments = [] }: Extract<PromptMessage, { role: 'user' }>,
  data: AttachedData,
): string | readonly WirePart[] {
  if (attachments.length === 0) return text;
  const said: readonly WirePart[] = text === '' ? [] : [{ type: 'text', text }];
  return [...said, ...attachments.map((attachment) => attachedPart(attachment, data))];
}

interface Wiring {
  readonly data: AttachedData;
  readonly returning: Returning;
}

function wireMessage(message: PromptMessage, { data, returning }: Wiring): WireMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: userContent(message, data) };
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.text };
    case 'assistant': {
      const echoes = echoesOf(message, returning);
      const calls = (message.calls ?? []).map((call, index): WireCall => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
        ...echoes.calls.get(index),
      }));
      if (calls.length === 0) return { role: 'assistant', content: message.text };
      return {
        role: 'assistant',
        content: message.text === '' ? null : message.text,
        ...echoes.message,
        tool_calls: calls,
      };
    }
  }
}

/** Templates without a system role mostly want user and assistant in turn, so the two become one message. */
function beginningWith(
  instructions: string,
  [first, ...rest]: readonly WireMessage[],
): readonly WireMessage[] {
  if (first?.role !== 'user') {
    const own: WireMessage = { role: 'user', content: instructions };
    return first === undefined ? [own] : [own, first, ...rest];
  }
  const content =
    typeof first.content === 'string'
      ? `${instructions}\n\n${first.content}`
      : [{ type: 'text' as const, text: instructions }, ...first.content];
  return [{ role: 'user', content }, ...rest];
}

/** Instructions and messages in the wire format. */
export function wireMessages(
  prompt: { readonly instructions: string; readonly messages: readonly PromptMessage[] },
  how: { readonly role: SystemRole; readonly order: RoleOrder } & Wiring,
): readonly WireMessage[] {
  const { role } = how;
  const said = prompt.messages.map((message) => wireMessage(message, how));
  const messages = how.order === 'alternating' ? alternating(said) : said;
  if (role === 'user') return beginningWith(prompt.instructions, messages);
  return [{ role, content: prompt.instructions }, ...messages];
}
