import type {
  MessageParam,
  OutputConfig,
  TextBlockParam,
  Tool,
  ToolChoice,
} from '@anthropic-ai/sdk/resources/messages';
import { isObject, type JsonObject } from '../../core/json.js';
import type { ModelCapabilities } from '../capabilities.js';
import type { ModelRequest } from '../model.js';
import { NO_DATA, type AttachedData } from '../wire/attachment-parts.js';
import { isStrictSchema } from '../wire/is-strict-schema.js';
import { getReplayedItems, NO_REPLAY, type Replay } from '../wire/replayed-items.js';
import {
  composeInstructions,
  createTerms,
  isLeftOut,
  selectTools,
  type Terms,
} from '../wire/terms.js';
import { getAnthropicCapabilities, getDefaultOutput } from './capabilities.js';
import { CACHED, createMessages, type WireMessage } from './messages.js';

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
  const terms = selectTerms(request, capabilities);
  const isReplayed = !terms.without.includes('provider_items');
  const replay = (isReplayed ? options.replay : undefined) ?? NO_REPLAY;
  const settings = selectSettings(request, terms, replay);
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
    ...createTools(request, { terms, isThinking: isThinking(settings['thinking']), messages }),
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
  if (schema === undefined || (isEnforced && isStrictSchema(schema))) return terms;
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
  return { ...given, format: { type: 'json_schema', schema: responseFormat.schema } };
}

/** `any` is refused while the model may think; the API's own names of choices differ from ours. */
const CHOICES = { auto: 'auto', required: 'any', none: 'none' } as const;

function createTools(
  request: ModelRequest,
  {
    terms,
    isThinking: thinks,
    messages,
  }: {
    readonly terms: Terms;
    readonly isThinking: boolean;
    readonly messages: readonly MessageParam[];
  },
): Pick<MessagesRequest, 'tools' | 'tool_choice'> {
  const accepts = { ...terms.accepts, ...(thinks && { requiredToolChoice: false }) };
  const own = request.tools.map(({ name, description, parameters }): Tool => ({
    name,
    description,
    input_schema: { ...parameters, type: 'object' },
  }));
  if (own.length === 0) return createPastTools(messages);
  const { tools, tool_choice: choice } = selectTools(own, request, { ...terms, accepts });
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
