import type { JsonObject } from '../../../core/text/json.js';
import type { PromptMessage } from '../../../core/transcript/messages.js';
import {
  type ModelCapabilities,
  type RoleOrder,
  type SystemRole,
  getCapabilities,
} from '../../known-models.js';
import type { ModelRequest, ModelTool, RequestParameter } from '../../model.js';
import {
  type AttachedData,
  type ContentPart,
  NO_DATA,
  createPart,
} from '../../wire/attachment-parts.js';
import {
  EMPTY_MESSAGE,
  EMPTY_RESULT,
  MAX_TOP_LOGPROBS,
  type Terms,
  composeInstructions,
  createTerms,
  isLeftOut,
  selectTools,
  toSchemaName,
} from '../../wire/content.js';
import {
  type AssistantPromptMessage,
  NO_REPLAY,
  type Replay,
  listRefusedFields,
  pickOpaque,
} from '../../wire/opaque-fields.js';
import { isStrictSchema } from '../../wire/refusals.js';
import {
  type ChatCall,
  type ChatMessage,
  getProviderFields,
  restoreParts,
} from './provider-fields.js';

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
    const contents = [previous.content ?? '', message.content ?? ''].filter((one) => one !== '');
    if (contents.length === 0) return [message];
    const texts = contents.filter((one) => typeof one === 'string');
    const content =
      texts.length === contents.length
        ? texts.join('\n\n')
        : contents.flatMap((one) =>
            typeof one === 'string' ? [{ type: 'text', text: one }] : one,
          );
    return [{ ...message, content }];
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

/** How a server takes a message of calls without a text, and the results of the calls. */
interface MessageForms {
  /** Undefined: the field is left out. */
  readonly noContent: string | null | undefined;
  /** Whether results have the names of their tools. */
  readonly namedResults: boolean;
}

/** Returns the forms that the server has not refused. */
function selectForms(without: readonly RequestParameter[]): MessageForms {
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
  const parts =
    fields.content === undefined || withoutFields.has('content')
      ? undefined
      : restoreParts(text.trim() === '' ? '' : text, fields.content);
  if (calls.length === 0) return [{ role: 'assistant', content: parts ?? text, ...opaque }];
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
  const content = parts ?? (text.trim() === '' ? forms.noContent : text);
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

/** The body of `POST /chat/completions`. Settings are added under their own names. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ChatTool[];
  readonly tool_choice?: 'auto' | 'required' | 'none';
  readonly response_format?: ChatFormat;
  readonly logprobs?: true;
  readonly top_logprobs?: number;
  readonly stream?: true;
  readonly stream_options?: { readonly include_usage: true };
}

interface ChatTool {
  readonly type: 'function';
  readonly function: ModelTool;
}

type ChatFormat =
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly json_schema: {
        readonly name: string;
        readonly schema: JsonObject;
        readonly strict?: true;
      };
    };

interface ChatOptions {
  readonly stream: boolean;
  /** Default: known values for the model. */
  readonly capabilities?: ModelCapabilities;
  /** The result of `readAttachments`. */
  readonly data?: AttachedData;
  /** The provider fields that go back; default: none. */
  readonly replay?: Replay;
}

/**
 * Writes a request for Chat Completions. Equal messages produce equal bytes, so a longer request
 * begins with the messages of a shorter one, and the provider's prompt cache works.
 *
 * Settings are sent verbatim, but cannot replace perdure's own fields. Parameters that the model
 * does not accept, or that its server has refused, are omitted or replaced with an accepted form.
 */
export function createChatRequest(request: ModelRequest, options: ChatOptions): ChatRequest {
  const { without = [], logprobs } = request;
  const { capabilities = getCapabilities(request.model), data = NO_DATA } = options;
  const terms = createTerms(request, capabilities);
  const { accepts } = terms;
  const format = createFormat(request, terms);
  const isStream = options.stream && accepts.streaming;
  const isReplayed = !without.includes('provider_items');
  const replay = (isReplayed ? options.replay : undefined) ?? NO_REPLAY;
  return {
    ...selectSettings(request.settings, terms),
    model: request.model,
    messages: createChatMessages(
      { instructions: composeInstructions(request, terms), messages: request.messages },
      {
        role: accepts.systemRole,
        order: accepts.roleOrder,
        data,
        replay,
        forms: selectForms(without),
        withoutFields: listRefusedFields(without),
      },
    ),
    ...selectTools(request.tools.map(createTool), request, terms),
    ...(format !== undefined && { response_format: format }),
    ...(logprobs !== undefined &&
      accepts.logprobs && {
        logprobs: true,
        top_logprobs: Math.min(logprobs.top, MAX_TOP_LOGPROBS),
      }),
    ...(isStream && { stream: true }),
    ...(isStream &&
      !without.includes('stream_options') && { stream_options: { include_usage: true } }),
  };
}

function selectSettings(
  { maxOutputTokens, nativeTools: _native, ...others }: ModelRequest['settings'],
  terms: Terms,
): JsonObject {
  const kept = Object.entries(others).filter(([name]) => !isLeftOut(name, terms));
  return {
    ...Object.fromEntries(kept),
    ...(maxOutputTokens !== undefined && { [terms.accepts.maxTokensParameter]: maxOutputTokens }),
  };
}

function createTool({ name, description, parameters }: ModelTool): ChatTool {
  return { type: 'function', function: { name, description, parameters } };
}

function createFormat(
  { responseFormat }: ModelRequest,
  { accepts, without }: Terms,
): ChatFormat | undefined {
  if (responseFormat === undefined || accepts.responseFormat === 'none') return undefined;
  if (accepts.responseFormat === 'json_object') return { type: 'json_object' };
  const { schema } = responseFormat;
  const isStrict = isStrictSchema(schema) && !without.includes('response_format:strict');
  const name = toSchemaName(responseFormat);
  return { type: 'json_schema', json_schema: { name, schema, ...(isStrict && { strict: true }) } };
}
