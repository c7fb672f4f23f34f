import { isObject, type Json, type JsonObject } from '../../../core/text/json.js';
import type { PromptMessage } from '../../../core/transcript/messages.js';
import type { ModelCapabilities } from '../../known-models.js';
import { type ModelRequest, type ModelTool, ModelError } from '../../model.js';
import { createPart, type AttachedData, type ContentPart } from '../../wire/attachment-parts.js';
import {
  EMPTY_MESSAGE,
  EMPTY_RESULT,
  MAX_TOP_LOGPROBS,
  composeInstructions,
  createTerms,
  isLeftOut,
  selectTools,
  toSchemaName,
  type Terms,
} from '../../wire/content.js';
import { isStrictSchema } from '../../wire/refusals.js';
import type { Replay } from '../../wire/opaque-fields.js';
import {
  createScreenOutput,
  findScreenCalls,
  getTruncation,
  listVisibleTools,
  createAssistantItems,
} from './computer.js';

/** The body of `POST /responses`. Settings are added under their own names. */
export interface ResponsesRequest {
  readonly model: string;
  readonly instructions?: string;
  readonly input: readonly JsonObject[];
  readonly tools?: readonly JsonObject[];
  readonly tool_choice?: 'auto' | 'required' | 'none';
  readonly text?: JsonObject;
  readonly top_logprobs?: number;
  readonly include?: readonly string[];
  readonly max_output_tokens?: number;
  readonly store?: false;
  readonly stream?: true;
}

/** The data to which the messages of a request refer. */
interface References {
  readonly data: AttachedData;
  readonly replay: Replay;
}

interface ResponsesOptions extends References {
  readonly stream: boolean;
  readonly capabilities: ModelCapabilities;
  /** The tools that the provider executes; default: none. */
  readonly native?: readonly JsonObject[];
}

/**
 * Writes a request for the Responses API. Equal messages produce equal bytes. Nothing is stored at
 * the provider or refers to stored data: the whole conversation is sent each time, with the
 * provider's own items of earlier replies.
 */
export function createResponsesRequest(
  request: ModelRequest,
  { capabilities, stream, native = [], data, replay }: ResponsesOptions,
): ResponsesRequest {
  const { without = [] } = request;
  refuseStoredConversation(request.settings);
  const terms = createTerms(request, capabilities);
  const instructions = composeInstructions(request, terms);
  const { settings, text } = translateSettings(request.settings, terms);
  const format = createFormat(request, terms);
  const from = without.includes('provider_items') ? null : replay.from;
  return {
    ...getTruncation(native),
    ...settings,
    model: request.model,
    ...(instructions !== '' && { instructions }),
    input: createInput(request.messages, { data, replay: { ...replay, from } }),
    ...selectTools(
      [...listVisibleTools(request).map((tool) => createTool(tool, terms)), ...native],
      request,
      terms,
    ),
    ...((format ?? Object.keys(text).length > 0) && {
      text: { ...text, ...(format && { format }) },
    }),
    ...createInclude(request, terms),
    ...(!without.includes('store') && { store: false }),
    ...(stream && terms.accepts.streaming && { stream: true }),
  };
}

/** Settings that would store the conversation or the answer outside the run. */
const STORED = ['previous_response_id', 'conversation', 'background', 'store', 'input', 'prompt'];

function refuseStoredConversation(settings: ModelRequest['settings']): void {
  const found = STORED.find((name) => settings[name] !== undefined);
  if (found === undefined) return;
  throw new ModelError(
    `settings.${found}: the conversation is the run's own transcript, and nothing is stored at the provider; omit it`,
    { kind: 'request', type: 'bad_setting' },
  );
}

/**
 * Translates the settings that have other names in Chat Completions, so that agents need not know
 * the API.
 */
function translateSettings(
  given: ModelRequest['settings'],
  terms: Terms,
): { readonly settings: JsonObject; readonly text: JsonObject } {
  const {
    maxOutputTokens,
    nativeTools: _native,
    include: _include,
    reasoning_effort: effort,
    verbosity,
    ...others
  } = given;
  const { text, ...settings } = Object.fromEntries(
    Object.entries(others).filter(([name]) => !isLeftOut(name, terms)),
  );
  const reasoning = mergeObjects(settings['reasoning'], {
    ...(effort !== undefined && !isLeftOut('reasoning_effort', terms) && { effort }),
  });
  const ownText = mergeObjects(text, {
    ...(verbosity !== undefined && !isLeftOut('verbosity', terms) && { verbosity }),
  });
  return {
    settings: {
      ...settings,
      ...(reasoning && { reasoning }),
      ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    },
    text: ownText ?? {},
  };
}

/** Merges two objects. Returns undefined if the result is empty. */
function mergeObjects(given: Json | undefined, own: JsonObject): JsonObject | undefined {
  const merged = { ...(isObject(given) && given), ...own };
  return Object.keys(merged).length === 0 ? undefined : merged;
}

/**
 * Writes a tool, which is not strict: the API would require every property, and perdure checks
 * arguments itself.
 */
function createTool({ name, description, parameters }: ModelTool, { without }: Terms): JsonObject {
  const strict = without.includes('tools:strict') ? {} : { strict: false };
  return { type: 'function', name, description, parameters, ...strict };
}

function createFormat(
  { responseFormat }: ModelRequest,
  { accepts, without }: Terms,
): JsonObject | undefined {
  if (responseFormat === undefined || accepts.responseFormat === 'none') return undefined;
  if (accepts.responseFormat === 'json_object') return { type: 'json_object' };
  const { schema } = responseFormat;
  const strict = isStrictSchema(schema) && !without.includes('response_format:strict');
  return { type: 'json_schema', name: toSchemaName(responseFormat), schema, strict };
}

function createInclude(
  request: ModelRequest,
  { accepts, without }: Terms,
): Pick<ResponsesRequest, 'include' | 'top_logprobs'> {
  const given = request.settings['include'];
  const own = Array.isArray(given) ? given.filter((name: Json) => typeof name === 'string') : [];
  const isReturned = accepts.reasoningItems && !without.includes('include');
  const logprobs = accepts.logprobs ? request.logprobs : undefined;
  const include = new Set([
    ...own,
    ...(isReturned ? ['reasoning.encrypted_content'] : []),
    ...(logprobs ? ['message.output_text.logprobs'] : []),
  ]);
  return {
    ...(include.size > 0 && { include: [...include] }),
    ...(logprobs && { top_logprobs: Math.min(logprobs.top, MAX_TOP_LOGPROBS) }),
  };
}

function createInput(
  messages: readonly PromptMessage[],
  { data, replay }: References,
): readonly JsonObject[] {
  const screens = findScreenCalls(messages, replay);
  return messages.flatMap((message): readonly JsonObject[] => {
    switch (message.role) {
      case 'user':
        return [createUserItem(message, data)];
      case 'assistant':
        return createAssistantItems(message, { screens, replay });
      case 'tool': {
        const item = screens.get(message.callId);
        if (item !== undefined) return createScreenOutput(message, { item, data });
        return [
          { type: 'function_call_output', call_id: message.callId, output: toOutput(message.text) },
        ];
      }
    }
  });
}

function toOutput(text: string): string {
  return text.trim() === '' ? EMPTY_RESULT : text;
}

function createUserItem(
  { text, attachments = [] }: Extract<PromptMessage, { readonly role: 'user' }>,
  data: AttachedData,
): JsonObject {
  if (attachments.length === 0) {
    return { type: 'message', role: 'user', content: text.trim() === '' ? EMPTY_MESSAGE : text };
  }
  const parts = attachments.map((attachment) => toInputPart(createPart(attachment, data)));
  const words: readonly JsonObject[] = text === '' ? [] : [{ type: 'input_text', text }];
  return { type: 'message', role: 'user', content: [...words, ...parts] };
}

function toInputPart(part: ContentPart): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image_url':
      return { type: 'input_image', image_url: part.image_url.url, detail: 'auto' };
    case 'file':
      return { type: 'input_file', ...part.file };
  }
}
