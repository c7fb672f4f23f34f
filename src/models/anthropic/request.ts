import type {
  Base64ImageSource,
  CacheControlEphemeral,
  ContentBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
  MessageParam,
  OutputConfig,
  TextBlockParam,
  Tool,
  ToolChoice,
  ToolResultBlockParam,
} from '@anthropic-ai/sdk/resources/messages';
import { type Json, type JsonObject, isObject } from '../../core/text/json.js';
import type { Attachment, PromptMessage } from '../../core/transcript/messages.js';
import type { ModelCapabilities } from '../known-models.js';
import { ModelError, type ModelRequest } from '../model.js';
import { type AttachedData, NO_DATA, createPart } from '../wire/attachment-parts.js';
import {
  EMPTY_MESSAGE,
  type Terms,
  composeInstructions,
  createTerms,
  isLeftOut,
  selectTools,
} from '../wire/content.js';
import { NO_REPLAY, type Replay, getReplayedItems } from '../wire/opaque-fields.js';
import { isStrictSchema } from '../wire/refusals.js';
import {
  createAssistantBlocks,
  getAnthropicCapabilities,
  getDefaultOutput,
  toTextBlocks,
} from './assistant.js';

/** A message in the form of Anthropic's API, always with blocks. */
interface WireMessage {
  readonly role: 'user' | 'assistant';
  content: ContentBlockParam[];
}

interface References {
  readonly data: AttachedData;
  readonly replay: Replay;
}

/** Marks the end of a cached prefix; empty for servers that refuse the mark. */
type CacheMark = Partial<typeof CACHED>;

/** Marks the end of a prefix that the provider caches for five minutes. */
const CACHED: { readonly cache_control: CacheControlEphemeral } = {
  cache_control: { type: 'ephemeral' },
};

/**
 * Writes messages for Anthropic's API: user and assistant alternate, so neighbors of one role
 * become one message, and results of calls are blocks of the user.
 */
function createMessages(
  prompt: readonly PromptMessage[],
  { mark = CACHED, ...references }: References & { readonly mark?: CacheMark },
): readonly WireMessage[] {
  const messages: WireMessage[] = [];
  for (const message of prompt) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const content = createBlocks(message, references);
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) messages.push({ role, content });
  }
  return markCached(messages, mark);
}

/**
 * Marks the end of the newest message of the user, and of the one that ended the previous request.
 */
function markCached(messages: WireMessage[], mark: CacheMark): readonly WireMessage[] {
  for (const message of messages.filter(({ role }) => role === 'user').slice(-2)) {
    const last = message.content.pop();
    // A user's blocks are texts, images, documents, and results; all of them accept the mark.
    if (last !== undefined) message.content.push({ ...last, ...mark });
  }
  return messages;
}

function createBlocks(message: PromptMessage, { data, replay }: References): ContentBlockParam[] {
  switch (message.role) {
    case 'user': {
      const { text, attachments = [] } = message;
      const blocks = [
        ...attachments.map((one) => createAttachment(one, data)),
        ...toTextBlocks(text),
      ];
      return blocks.length === 0 ? toTextBlocks(EMPTY_MESSAGE) : blocks;
    }
    case 'tool':
      return [createResult(message, data)];
    case 'assistant':
      return createAssistantBlocks(message, replay);
  }
}

function createResult(
  { callId, text, attachments = [] }: Extract<PromptMessage, { role: 'tool' }>,
  data: AttachedData,
): ToolResultBlockParam {
  const result: ToolResultBlockParam = { type: 'tool_result', tool_use_id: callId };
  if (attachments.length === 0) return text.trim() === '' ? result : { ...result, content: text };
  return {
    ...result,
    content: [...toTextBlocks(text), ...attachments.map((one) => createAttachment(one, data))],
  };
}

const DATA_URL = /^data:([^;,]+);base64,/;

function createAttachment(
  attachment: Attachment,
  data: AttachedData,
): ImageBlockParam | DocumentBlockParam {
  const part = createPart(attachment, data);
  const url =
    part.type === 'image_url'
      ? part.image_url.url
      : part.type === 'file'
        ? part.file.file_data
        : '';
  const head = DATA_URL.exec(url.slice(0, 200));
  if (head === null) return { type: 'image', source: { type: 'url', url } };
  const mediaType = head[1] ?? '';
  const base64 = url.slice(head[0].length);
  if (part.type === 'file') return createDocument(part.file.filename, { mediaType, base64 });
  if (isImageType(mediaType)) {
    return { type: 'image', source: { type: 'base64', media_type: mediaType, data: base64 } };
  }
  throw unsupported(mediaType, 'attach the image as PNG, JPEG, GIF, or WebP');
}

function createDocument(
  title: string,
  { mediaType, base64 }: { readonly mediaType: string; readonly base64: string },
): DocumentBlockParam {
  if (mediaType === 'application/pdf') {
    return {
      type: 'document',
      title,
      source: { type: 'base64', media_type: mediaType, data: base64 },
    };
  }
  if (!/^text\/|[/+]json$|[/+]xml$/.test(mediaType)) {
    throw unsupported(mediaType, 'attach the file as a PDF or as text');
  }
  const text = Buffer.from(base64, 'base64').toString();
  return {
    type: 'document',
    title,
    source: { type: 'text', media_type: 'text/plain', data: text },
  };
}

function isImageType(type: string): type is Base64ImageSource['media_type'] {
  return ['image/png', 'image/jpeg', 'image/gif', 'image/webp'].includes(type);
}

function unsupported(mediaType: string, fix: string): ModelError {
  const message = `Anthropic's API does not accept attachments of type ${mediaType}; ${fix}`;
  return new ModelError(message, { kind: 'request', type: 'bad_attachment' });
}

/** The body of `POST /v1/messages`. Settings are added under their own names. */
export interface MessagesRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly system?: readonly TextBlockParam[];
  readonly messages: readonly WireMessage[];
  readonly tools?: readonly Tool[];
  readonly tool_choice?: ToolChoice;
  readonly output_config?: OutputConfig;
  readonly stream?: true;
}

/**
 * Writes a request for Anthropic's Messages API. Equal messages give equal bytes. Up to three
 * places end a prefix to cache: the instructions with the tools, and the newest two messages of the
 * user. Each request therefore reads the cache of the previous one.
 */
export function createMessagesRequest(
  request: ModelRequest,
  options: {
    readonly stream: boolean;
    readonly capabilities?: ModelCapabilities;
    readonly data?: AttachedData;
    readonly replay?: Replay;
  },
): MessagesRequest {
  const { capabilities = getAnthropicCapabilities(request.model), data = NO_DATA } = options;
  const selected = selectTerms(request, capabilities);
  const isReplayed = !selected.without.includes('provider_items');
  const replay = (isReplayed ? options.replay : undefined) ?? NO_REPLAY;
  const settings = selectSettings(request, selected, replay);
  const terms = isThinking(settings['thinking']) ? withoutDemand(selected) : selected;
  const instructions = composeInstructions(request, terms);
  const mark = terms.without.includes('cache_control') ? {} : CACHED;
  const messages = createMessages(request.messages, { data, replay, mark });
  const output = createOutputConfig(request, terms);
  return {
    ...settings,
    model: request.model,
    max_tokens: request.settings.maxOutputTokens ?? getDefaultOutput(request.model),
    ...(instructions.trim() !== '' && {
      system: [{ type: 'text', text: instructions, ...mark }],
    }),
    messages,
    ...createTools(request, { terms, messages }),
    ...(output !== undefined && { output_config: output }),
    ...(options.stream && terms.accepts.streaming && { stream: true }),
  };
}

/**
 * Selects the terms of a request. A schema that cannot be enforced is described in the
 * instructions.
 */
function selectTerms(request: ModelRequest, capabilities: ModelCapabilities): Terms {
  const terms = createTerms(request, capabilities);
  const schema = request.responseFormat?.schema;
  const isEnforced = terms.accepts.responseFormat === 'json_schema';
  if (schema === undefined) return terms;
  if (isEnforced && isStrictSchema(schema) && !isRecursive(schema)) return terms;
  return { ...terms, accepts: { ...terms.accepts, responseFormat: 'none' } };
}

function selectSettings(request: ModelRequest, terms: Terms, replay: Replay): JsonObject {
  const {
    maxOutputTokens: _max,
    nativeTools: _native,
    parallel_tool_calls: _parallel,
    output_config: _output,
    thinking,
    ...others
  } = request.settings;
  const kept = Object.entries(others).filter(([name]) => !isLeftOut(name, terms));
  const withThinking =
    thinking !== undefined && !isLeftOut('thinking', terms) && mayThink(thinking, request, replay);
  return { ...Object.fromEntries(kept), ...(withThinking && { thinking }) };
}

/** While the model may think, the API refuses `any`, so the instructions demand a call. */
function withoutDemand(terms: Terms): Terms {
  return { ...terms, accepts: { ...terms.accepts, requiredToolChoice: false } };
}

function isThinking(thinking: unknown): boolean {
  return isObject(thinking) && (thinking['type'] === 'enabled' || thinking['type'] === 'adaptive');
}

/**
 * Returns false while a turn's calls have no thoughts to send back, such as after a change of the
 * model: with a thinking budget, the API refuses such a turn. Thinking returns with the next turn.
 */
function mayThink(thinking: unknown, { messages }: ModelRequest, replay: Replay): boolean {
  if (!isObject(thinking) || thinking['type'] !== 'enabled') return true;
  const last = messages.findLast(({ role }) => role !== 'tool');
  if (last?.role !== 'assistant' || (last.calls ?? []).length === 0) return true;
  const items = getReplayedItems(last, replay) ?? [];
  return items.some(({ type }) => type === 'thinking' || type === 'redacted_thinking');
}

function createOutputConfig(
  { settings, responseFormat }: ModelRequest,
  { accepts }: Terms,
): OutputConfig | undefined {
  const given = isObject(settings['output_config']) ? settings['output_config'] : undefined;
  const isSent = responseFormat !== undefined && accepts.responseFormat === 'json_schema';
  if (!isSent) return given;
  return {
    ...given,
    format: { type: 'json_schema', schema: withoutBounds(responseFormat.schema) },
  };
}

/** Keywords of strict schemas that the API refuses. */
const BOUNDS = new Set(
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf maxItems pattern'.split(' '),
);

/**
 * Returns a strict schema in the subset that the API enforces. It refuses bounds, such as the
 * `minimum` of an integer, so the description says them; the answer is checked against the whole
 * schema anyway. The SDK's own conversion would load the SDK.
 */
function withoutBounds(node: JsonObject): JsonObject {
  const entries = Object.entries(node);
  const { properties, items, anyOf, $defs, description, ...rest } = Object.fromEntries(
    entries.filter((entry) => !isBound(entry)),
  );
  const said = entries
    .filter(isBound)
    // zod bounds each integer by what a number can hold.
    .filter(([, value]) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
    .join(', ');
  const own = typeof description === 'string' ? [description] : [];
  const text = [...own, ...(said === '' ? [] : [`(${said})`])].join(' ');
  return {
    ...rest,
    ...(text !== '' && { description: text }),
    ...(isObject(properties) && { properties: convertAll(properties) }),
    ...(items !== undefined && { items: convert(items) }),
    ...(Array.isArray(anyOf) && { anyOf: anyOf.map(convert) }),
    ...(isObject($defs) && { $defs: convertAll($defs) }),
  };
}

function isBound([key, value]: readonly [string, Json | undefined]): boolean {
  return BOUNDS.has(key) || (key === 'minItems' && value !== 0 && value !== 1);
}

function convert(node: Json): Json {
  return isObject(node) ? withoutBounds(node) : node;
}

function convertAll(nodes: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(nodes).map(([name, node = null]) => [name, convert(node)]),
  );
}

/** Returns whether a schema refers to itself, which the API refuses. */
function isRecursive(schema: JsonObject): boolean {
  const definitions = isObject(schema['$defs']) ? schema['$defs'] : {};
  const done = new Set<string>();
  const returns = (node: unknown, open: readonly string[]): boolean => {
    if (Array.isArray(node)) return node.some((one) => returns(one, open));
    if (!isObject(node)) return false;
    const { $ref: reference, ...rest } = node;
    if (typeof reference !== 'string') return Object.values(rest).some((one) => returns(one, open));
    if (reference === '#' || open.includes(reference)) return true;
    if (done.has(reference)) return false;
    const name = reference.replace(/^#\/\$defs\//, '');
    const found = returns(definitions[name], [...open, reference]);
    done.add(reference);
    return found;
  };
  return returns(schema, []);
}

/** The API's own names of choices differ from ours. */
const CHOICES = { auto: 'auto', required: 'any', none: 'none' } as const;

function createTools(
  request: ModelRequest,
  { terms, messages }: { readonly terms: Terms; readonly messages: readonly MessageParam[] },
): Pick<MessagesRequest, 'tools' | 'tool_choice'> {
  const own = request.tools.map(({ name, description, parameters }): Tool => ({
    name,
    description,
    input_schema: { ...parameters, type: 'object' },
  }));
  if (own.length === 0) return createPastTools(messages);
  const { tools, tool_choice: choice } = selectTools(own, request, terms);
  if (tools === undefined) return {};
  const isSingle = choice !== 'none' && request.settings['parallel_tool_calls'] === false;
  const type = choice && CHOICES[choice];
  return {
    tools,
    ...(type && { tool_choice: { type, ...(isSingle && { disable_parallel_tool_use: true }) } }),
  };
}

/**
 * Returns the tools of earlier calls: the API refuses such calls if the request defines no tools,
 * so they are defined but forbidden.
 */
function createPastTools(
  messages: readonly MessageParam[],
): Pick<MessagesRequest, 'tools' | 'tool_choice'> {
  const names = messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((block) => (block.type === 'tool_use' ? [block.name] : [])),
  );
  if (names.length === 0) return {};
  const tools = [...new Set(names)].map((name): Tool => ({
    name,
    input_schema: { type: 'object' },
  }));
  return { tools, tool_choice: { type: 'none' } };
}
