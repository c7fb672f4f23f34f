import type { PromptMessage } from '../../../core/transcript/messages.js';
import type { RoleOrder, SystemRole } from '../../capabilities.js';
import type { RequestParameter } from '../../parameters.js';
import { createPart, type AttachedData, type ContentPart } from '../../wire/attachment-parts.js';
import { EMPTY_MESSAGE, EMPTY_RESULT } from '../../wire/content.js';
import { pickOpaque } from '../../wire/opaque-fields.js';
import type { AssistantPromptMessage, Replay } from '../../wire/replayed-items.js';
import { alternateRoles } from './alternate-roles.js';
import type { ChatCall, ChatMessage } from './chat-message.js';
import { getProviderFields } from './provider-fields.js';

/** How a server takes a message of calls without a text, and the results of the calls. */
export interface MessageForms {
  /** Undefined: the field is left out. */
  readonly noContent: string | null | undefined;
  /** Whether results have the names of their tools. */
  readonly namedResults: boolean;
}

/** Returns the forms that the server has not refused. */
export function selectForms(without: readonly RequestParameter[]): MessageForms {
  const order = [
    ['content:null', null],
    ['content:empty', ''],
    ['content:absent', undefined],
  ] as const;
  const first = order.find(([parameter]) => !without.includes(parameter));
  return {
    noContent: first === undefined ? CALLS_ONLY : first[1],
    namedResults: without.includes('tool_results:unnamed'),
  };
}

/** The text of a message of calls for servers that require a text. */
const CALLS_ONLY = '(tool calls)';

interface Options {
  readonly data: AttachedData;
  readonly replay: Replay;
  /** Default: the forms of OpenAI. */
  readonly forms?: MessageForms;
  /** Fields of the provider's items that the server has refused. */
  readonly withoutFields?: ReadonlySet<string>;
}

/** Writes instructions and messages for Chat Completions. */
export function createChatMessages(
  prompt: { readonly instructions: string; readonly messages: readonly PromptMessage[] },
  options: { readonly role: SystemRole; readonly order: RoleOrder } & Options,
): readonly ChatMessage[] {
  const { role, order } = options;
  const forms = options.forms ?? selectForms([]);
  const writing: Writing = { ...options, forms, calls: new Map(), ids: new Set() };
  const written = prompt.messages.flatMap((message) => createMessage(message, writing));
  const messages = order === 'alternating' ? alternateRoles(written) : written;
  if (prompt.instructions === '') return messages;
  if (role === 'user') return prependInstructions(prompt.instructions, messages);
  return [{ role, content: prompt.instructions }, ...messages];
}

interface Writing extends Required<Pick<Options, 'data' | 'replay' | 'forms'>> {
  readonly withoutFields?: ReadonlySet<string>;
  /** The calls written so far, by perdure's ids. */
  readonly calls: Map<string, { readonly id: string; readonly name: string }>;
  /** The ids of these calls as the server sees them. */
  readonly ids: Set<string>;
}

function createMessage(message: PromptMessage, writing: Writing): readonly ChatMessage[] {
  const { data, calls, forms } = writing;
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: createUserContent(message, data) }];
    case 'tool': {
      const { id, name } = calls.get(message.callId) ?? { id: message.callId, name: '' };
      return [
        {
          role: 'tool',
          tool_call_id: id,
          ...(forms.namedResults && name !== '' && { name }),
          content: message.text.trim() === '' ? EMPTY_RESULT : message.text,
        },
      ];
    }
    case 'assistant':
      return createAssistant(message, writing);
  }
}

/** Writes a reply of the model. One without text and calls is not sent: servers refuse it. */
function createAssistant(
  message: AssistantPromptMessage,
  { replay, forms, calls: written, ids, withoutFields = new Set() }: Writing,
): readonly ChatMessage[] {
  const { text, calls = [] } = message;
  if (calls.length === 0 && text.trim() === '') return [];
  const fields = getProviderFields(message, replay);
  const opaque = pickOpaque(fields.message, withoutFields);
  if (calls.length === 0) return [{ role: 'assistant', content: text, ...opaque }];
  const toolCalls = calls.map((call, index): ChatCall => {
    const own = fields.calls.get(index);
    // An id of the server that occurs twice would be ambiguous.
    const id = own?.id === undefined || ids.has(own.id) ? call.id : own.id;
    ids.add(id);
    written.set(call.id, { id, name: call.name });
    const { name, arguments: args } = call;
    return {
      id,
      type: 'function',
      function: { name, arguments: args, ...own?.function },
      ...pickOpaque(own?.call ?? {}, withoutFields),
    };
  });
  const content = text.trim() === '' ? forms.noContent : text;
  return [
    {
      role: 'assistant',
      ...(content !== undefined && { content }),
      ...opaque,
      tool_calls: toolCalls,
    },
  ];
}

function createUserContent(
  { text, attachments = [] }: Extract<PromptMessage, { role: 'user' }>,
  data: AttachedData,
): string | readonly ContentPart[] {
  if (attachments.length === 0) return text.trim() === '' ? EMPTY_MESSAGE : text;
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
