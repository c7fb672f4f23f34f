import type { JsonObject } from '../../../core/json.js';
import { NO_DATA, type AttachedData } from '../../attachments.js';
import { capabilitiesOf, reducedBy, type Capabilities } from '../../capabilities.js';
import type { ModelRequest, ModelTool, ResponseSchema } from '../../model.js';
import { wireMessages, type WireMessage } from './messages.js';
import type { Parameter } from '../../parameters.js';
import { NOTHING_BACK, type Returning } from '../replayed-items.js';
import { isStrictSchema } from '../../strict-schema.js';

interface WireTool {
  readonly type: 'function';
  readonly function: ModelTool;
}

type WireFormat =
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly json_schema: {
        readonly name: string;
        readonly schema: JsonObject;
        readonly strict?: true;
      };
    };

/** The body of `POST /chat/completions`. Settings stand beside these fields under their own names. */
export interface WireRequest {
  readonly model: string;
  readonly messages: readonly WireMessage[];
  readonly tools?: readonly WireTool[];
  readonly tool_choice?: 'auto' | 'required' | 'none';
  readonly response_format?: WireFormat;
  readonly logprobs?: true;
  readonly top_logprobs?: number;
  readonly stream?: true;
  readonly stream_options?: { readonly include_usage: true };
}

export interface WireOptions {
  readonly stream: boolean;
  /** Default: what is known of the model. */
  readonly capabilities?: Capabilities;
  /** What `readAttachments` read. */
  readonly data?: AttachedData;
  /** What the server wants back; default: nothing. */
  readonly returning?: Returning;
}

/** What the server takes, and what it has refused in words. */
export interface Terms {
  readonly takes: Capabilities;
  readonly without: readonly Parameter[];
}

/** No server knows more alternatives. */
const MOST_ALTERNATIVES = 20;

function wireTool({ name, description, parameters }: ModelTool): WireTool {
  return { type: 'function', function: { name, description, parameters } };
}

function wireSettings(
  { maxOutputTokens, nativeTools: _native, ...others }: ModelRequest['settings'],
  { takes, without }: Terms,
): JsonObject {
  const leftOut = (name: string): boolean =>
    without.includes(`settings.${name}`) ||
    (!takes.temperature && (name === 'temperature' || name === 'top_p')) ||
    (!takes.parallelTools && name === 'parallel_tool_calls');
  const kept = Object.fromEntries(Object.entries(others).filter(([name]) => !leftOut(name)));
  return maxOutputTokens === undefined
    ? kept
    : { ...kept, [takes.maxTokensParameter]: maxOutputTokens };
}

function wireTools(
  { tools, toolChoice: wanted }: ModelRequest,
  { takes, without }: Terms,
): Pick<WireRequest, 'tools' | 'tool_choice'> {
  const choice = wanted === 'required' && !takes.requiredToolChoice ? 'auto' : wanted;
  const isRefused = without.includes(`tool_choice:${choice}`);
  // Tools that must not be called are not shown where that cannot be said otherwise.
  if (tools.length === 0 || (choice === 'none' && isRefused)) return {};
  return { tools: tools.map(wireTool), ...(!isRefused && { tool_choice: choice }) };
}

function wireFormat(
  { responseFormat: wanted }: ModelRequest,
  { takes, without }: Terms,
): WireFormat | undefined {
  if (wanted === undefined || takes.responseFormat === 'none') return undefined;
  if (takes.responseFormat === 'json_object') return { type: 'json_object' };
  const { schema } = wanted;
  const isStrict = isStrictSchema(schema) && !without.includes('response_format:strict');
  const name = schemaName(wanted);
  return { type: 'json_schema', json_schema: { name, schema, ...(isStrict && { strict: true }) } };
}

/** As servers take it. */
export function schemaName({ name }: ResponseSchema): string {
  return name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || 'answer';
}

/** With the schema in words where it cannot be sent. */
export function instructionsOf(
  { instructions, responseFormat }: ModelRequest,
  { takes }: Terms,
): string {
  const inWords = takes.responseFormat === 'json_schema' ? undefined : responseFormat?.instruction;
  return [instructions, inWords].filter((text) => text !== undefined && text !== '').join('\n\n');
}

/**
 * The request in the wire format, as a function of nothing but its arguments: equal messages give
 * equal bytes, so the serialized messages of a longer request begin with those of a shorter one
 * and the provider's prompt cache holds.
 *
 * Settings go out verbatim, but cannot replace the fields that perdure itself fills. What the model
 * does not take, or its server has refused, is left out or put in the way that it takes.
 */
export function wireRequest(request: ModelRequest, options: WireOptions): WireRequest {
  const { without = [], logprobs } = request;
  const capabilities = options.capabilities ?? capabilitiesOf(request.model);
  const terms: Terms = { takes: reducedBy(capabilities, without), without };
  const { takes } = terms;
  const format = wireFormat(request, terms);
  const returning = without.includes('provider_items')
    ? NOTHING_BACK
    : (options.returning ?? NOTHING_BACK);
  const { data = NO_DATA } = options;
  return {
    ...wireSettings(request.settings, terms),
    model: request.model,
    messages: wireMessages(
      { instructions: instructionsOf(request, terms), messages: request.messages },
      { role: takes.systemRole, order: takes.roleOrder, data, returning },
    ),
    ...wireTools(request, terms),
    ...(format !== undefined && { response_format: format }),
    ...(logprobs !== undefined &&
      takes.logprobs && {
        logprobs: true,
        top_logprobs: Math.min(logprobs.top, MOST_ALTERNATIVES),
      }),
    ...(options.stream && takes.streaming && { stream: true }),
    ...(options.stream &&
      takes.streaming &&
      !without.includes('stream_options') && { stream_options: { include_usage: true } }),
  };
}
