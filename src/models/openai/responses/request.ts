import { isObject, type Json, type JsonObject } from '../../../core/json.js';
import { reduceCapabilities, type ModelCapabilities } from '../../capabilities.js';
import type { ModelRequest, ModelTool } from '../../model.js';
import { ModelError } from '../../model-error.js';
import { truncationFor, withoutHandler, screenCalls, screenOutput } from './computer.js';
import { type Item, assistantItems } from './items.js';
import { instructionsOf, schemaName, type Terms } from '../chat/request.js';
import { isStrictSchema } from '../is-strict-schema.js';
import type { PromptMessage } from '../../../core/transcript/messages.js';
import { attachedPart, type AttachedData, type WirePart } from '../attachment-parts.js';
import type { Returning } from '../replayed-items.js';

/** The body of `POST /responses`. Settings stand beside these fields under their own names. */
export interface ResponsesRequest {
  readonly model: string;
  readonly instructions?: string;
  readonly input: readonly Item[];
  readonly tools?: readonly Item[];
  readonly tool_choice?: 'auto' | 'required' | 'none';
  readonly text?: JsonObject;
  readonly top_logprobs?: number;
  readonly include?: readonly string[];
  readonly max_output_tokens?: number;
  readonly store?: false;
  readonly stream?: true;
}

export interface ResponsesOptions extends Referred {
  readonly stream: boolean;
  readonly capabilities: ModelCapabilities;
  /** Tools that the provider executes, as they go out. */
  readonly native?: readonly Item[];
}

const MOST_ALTERNATIVES = 20;

/** They would put the conversation, or the answer, where the run does not have it. */
const NOT_OURS = ['previous_response_id', 'conversation', 'background', 'store', 'input', 'prompt'];

/** Not strict: the API would make every property required, and perdure checks arguments itself. */
function wireTool({ name, description, parameters }: ModelTool): Item {
  return { type: 'function', name, description, parameters, strict: false };
}

function refuseNotOurs(settings: ModelRequest['settings']): void {
  const found = NOT_OURS.find((name) => settings[name] !== undefined);
  if (found === undefined) return;
  throw new ModelError(
    `settings.${found}: the conversation is the run's own transcript, and nothing is kept at the provider; leave it out`,
    { kind: 'request', type: 'bad_setting' },
  );
}

/** Settings under the names of this API: an agent need not know which one its model is called by. */
function wireSettings(
  {
    maxOutputTokens,
    nativeTools: _native,
    reasoning_effort: effort,
    verbosity,
    ...others
  }: ModelRequest['settings'],
  { takes, without }: Terms,
): { readonly kept: JsonObject; readonly text: JsonObject } {
  const leftOut = (name: string): boolean =>
    without.includes(`settings.${name}`) ||
    (!takes.temperature && (name === 'temperature' || name === 'top_p')) ||
    (!takes.parallelTools && name === 'parallel_tool_calls');
  const {
    text,
    include: _,
    ...kept
  } = Object.fromEntries(Object.entries(others).filter(([name]) => !leftOut(name)));
  const reasoning = merged(kept['reasoning'], {
    ...(effort !== undefined && !leftOut('reasoning_effort') && { effort }),
  });
  const said = { ...(verbosity !== undefined && !leftOut('verbosity') && { verbosity }) };
  return {
    kept: {
      ...kept,
      ...(reasoning && { reasoning }),
      ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    },
    text: merged(text, said) ?? {},
  };
}

function merged(given: Json | undefined, own: JsonObject): JsonObject | undefined {
  const both = { ...(isObject(given) && given), ...own };
  return Object.keys(both).length === 0 ? undefined : both;
}

function wireTools(
  request: ModelRequest,
  { takes, without }: Terms,
  native: readonly Item[],
): Pick<ResponsesRequest, 'tools' | 'tool_choice'> {
  const { toolChoice: wanted } = request;
  const choice = wanted === 'required' && !takes.requiredToolChoice ? 'auto' : wanted;
  const isRefused = without.includes(`tool_choice:${choice}`);
  const all = [...withoutHandler(request).map(wireTool), ...native];
  if (all.length === 0 || (choice === 'none' && isRefused)) return {};
  return { tools: all, ...(!isRefused && { tool_choice: choice }) };
}

function wireFormat(
  { responseFormat: wanted }: ModelRequest,
  { takes, without }: Terms,
): JsonObject | undefined {
  if (wanted === undefined || takes.responseFormat === 'none') return undefined;
  if (takes.responseFormat === 'json_object') return { type: 'json_object' };
  const { schema } = wanted;
  const strict = isStrictSchema(schema) && !without.includes('response_format:strict');
  return { type: 'json_schema', name: schemaName(wanted), schema, strict };
}

function wireInclude(
  request: ModelRequest,
  { takes, without }: Terms,
): Pick<ResponsesRequest, 'include' | 'top_logprobs'> {
  const given = request.settings['include'];
  const own = Array.isArray(given) ? given.filter((name: Json) => typeof name === 'string') : [];
  const isTaken = takes.reasoningItems && !without.includes('include');
  const logprobs = takes.logprobs ? request.logprobs : undefined;
  const include = new Set([
    ...own,
    ...(isTaken ? ['reasoning.encrypted_content'] : []),
    ...(logprobs ? ['message.output_text.logprobs'] : []),
  ]);
  return {
    ...(include.size > 0 && { include: [...include] }),
    ...(logprobs && { top_logprobs: Math.min(logprobs.top, MOST_ALTERNATIVES) }),
  };
}

/**
 * The request as the Responses API takes it, as a function of nothing but its arguments: equal messages
 * give equal bytes. Nothing is stored at the provider, and nothing there is referred to: the whole
 * conversation goes out each time, with what the provider wants back of its own replies.
 */
export function responsesRequest(
  request: ModelRequest,
  { capabilities, stream, native = [], ...referred }: ResponsesOptions,
): ResponsesRequest {
  const { without = [] } = request;
  refuseNotOurs(request.settings);
  const terms: Terms = { takes: reduceCapabilities(capabilities, without), without };
  const instructions = instructionsOf(request, terms);
  const { kept, text } = wireSettings(request.settings, terms);
  const format = wireFormat(request, terms);
  const from = without.includes('provider_items') ? null : referred.from;
  return {
    ...truncationFor(native),
    ...kept,
    model: request.model,
    ...(instructions !== '' && { instructions }),
    input: inputItems(request.messages, { ...referred, from }),
    ...wireTools(request, terms, native),
    ...((format ?? Object.keys(text).length > 0) && {
      text: { ...text, ...(format && { format }) },
    }),
    ...wireInclude(request, terms),
    ...(!without.includes('store') && { store: false }),
    ...(stream && terms.takes.streaming && { stream: true }),
  };
}

/** What the messages of a request only refer to. */
interface Referred extends Returning {
  readonly data: AttachedData;
}

function inputPart(part: WirePart): Item {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image_url':
      return { type: 'input_image', image_url: part.image_url.url, detail: 'auto' };
    case 'file':
      return { type: 'input_file', ...part.file };
  }
}

function userItem(
  { text, attachments = [] }: Extract<PromptMessage, { readonly role: 'user' }>,
  data: AttachedData,
): Item {
  if (attachments.length === 0) return { type: 'message', role: 'user', content: text };
  const parts = attachments.map((attachment) => inputPart(attachedPart(attachment, data)));
  const words: readonly Item[] = text === '' ? [] : [{ type: 'input_text', text }];
  return { type: 'message', role: 'user', content: [...words, ...parts] };
}

/** Messages as input items; equal messages give equal bytes, so a longer conversation begins as a shorter one. */
function inputItems(messages: readonly PromptMessage[], how: Referred): readonly Item[] {
  const screens = screenCalls(messages, how);
  return messages.flatMap((message): readonly Item[] => {
    switch (message.role) {
      case 'user':
        return [userItem(message, how.data)];
      case 'assistant':
        return assistantItems(message, { ...how, screens });
      case 'tool': {
        const item = screens.get(message.callId);
        if (item !== undefined) return screenOutput(message, { item, data: how.data });
        return [{ type: 'function_call_output', call_id: message.callId, output: message.text }];
      }
    }
  });
}
