import type { JsonObject } from '../../../core/json.js';
import type { ModelCapabilities } from '../../capabilities.js';
import { getCapabilities } from '../../known-models.js';
import type { ModelRequest, ModelTool } from '../../model.js';
import { NO_DATA, type AttachedData } from '../../wire/attachment-parts.js';
import { isStrictSchema } from '../../wire/is-strict-schema.js';
import { MAX_TOP_LOGPROBS } from '../logprobs.js';
import { listRefusedFields, NO_REPLAY, type Replay } from '../../wire/replayed-items.js';
import {
  composeInstructions,
  createTerms,
  isLeftOut,
  selectTools,
  toSchemaName,
  type Terms,
} from '../../wire/terms.js';
import { createChatMessages, selectForms } from './messages.js';
import type { ChatMessage } from './chat-message.js';

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

export interface ChatOptions {
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
