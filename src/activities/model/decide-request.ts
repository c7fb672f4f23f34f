import { sha256Hex } from '../../core/digest.js';
import type { ModelSettings, ToolChoice } from '../../core/definition/definition.js';
import { attachmentShape } from '../../core/guards/message.js';
import {
  amount,
  fields,
  jsonObject,
  list,
  oneOf,
  optional,
  shape,
  tagged,
  text,
} from '../../core/guards/shape.js';
import { canonicalJson, isObject, type JsonObject } from '../../core/json.js';
import { jsonText, show } from '../../core/text/format-value.js';
import type { Attachment } from '../../core/transcript/messages.js';
import type { ModelRequest, ModelTool, ResponseSchema } from '../../models/model.js';

/** The required fields of a request's message. */
type DecideMessage =
  | { readonly role: 'user'; readonly text: string; readonly attachments?: readonly Attachment[] }
  | { readonly role: 'assistant'; readonly text: string; readonly calls?: readonly DecideCall[] }
  | { readonly role: 'tool'; readonly text: string; readonly callId: string };

interface DecideCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

type DecideSettings = Pick<ModelSettings, 'temperature' | 'maxOutputTokens'>;

const positive = shape<number>(
  'a whole number from 1',
  (value) => Number.isSafeInteger(value) && Number(value) >= 1,
);
const messageShape = tagged<DecideMessage, 'role'>('role', {
  user: fields<Extract<DecideMessage, { role: 'user' }>>({
    role: oneOf('user'),
    text,
    attachments: optional(list(attachmentShape)),
  }),
  assistant: fields<Extract<DecideMessage, { role: 'assistant' }>>({
    role: oneOf('assistant'),
    text,
    calls: optional(list(fields<DecideCall>({ id: text, name: text, arguments: text }))),
  }),
  tool: fields<Extract<DecideMessage, { role: 'tool' }>>({
    role: oneOf('tool'),
    text,
    callId: text,
  }),
});

/**
 * The request fields that a decision function may set. Other fields of their parts are sent to the
 * provider unchecked.
 */
const FIELDS: Readonly<Record<string, (value: unknown, at: string) => string | null>> = {
  instructions: text,
  messages: list(messageShape),
  tools: list(fields<ModelTool>({ name: text, description: text, parameters: jsonObject })),
  toolChoice: oneOf<ToolChoice>('auto', 'required', 'none'),
  settings: fields<DecideSettings>({
    temperature: optional(amount),
    maxOutputTokens: optional(positive),
  }),
  responseFormat: fields<ResponseSchema>({
    name: text,
    schema: jsonObject,
    instruction: optional(text),
  }),
};

/** A request of a decision function. */
export interface DecideRequested {
  readonly request: ModelRequest;
  /** SHA-256 of the function's request. It does not depend on the remaining budget. */
  readonly digest: string;
}

/**
 * Returns the step's own request with the fields set by a decision function. Throws an `Error` for
 * an unknown field and for a value that does not fit its field.
 */
export function composeDecideRequest(own: ModelRequest, given: unknown): DecideRequested {
  const problem = requestProblem(given);
  if (problem !== null) throw new Error(`model.call: ${problem}`);
  // The function may change its objects while the call is under way.
  const set = Object.entries(isObject(given) ? structuredClone(given) : {}).filter(
    ([, value]) => value !== undefined,
  );
  const request: ModelRequest = { ...own, ...Object.fromEntries(set) };
  const { maxOutputTokens: most, ...settings } = own.settings;
  const isOwn = request.settings === own.settings;
  return {
    request: isOwn ? request : capped(request, most),
    digest: requestDigest(isOwn ? { ...request, settings } : request),
  };
}

/** Returns the request with at most this many output tokens; undefined: its own number. */
export function capped(request: ModelRequest, most: number | undefined): ModelRequest {
  const { maxOutputTokens = most } = request.settings;
  if (most === undefined || maxOutputTokens === undefined) return request;
  const least = Math.min(most, maxOutputTokens);
  return { ...request, settings: { ...request.settings, maxOutputTokens: least } };
}

function requestProblem(given: unknown): string | null {
  if (!isObject(given)) return `expected an object of a request's fields, got ${show(given)}`;
  const known = Object.keys(FIELDS);
  for (const [key, value] of Object.entries(given)) {
    const fits = FIELDS[key];
    if (fits === undefined) return `${key}: expected one of ${known.join(', ')}`;
    const problem = value === undefined ? null : fits(value, key);
    if (problem !== null) return problem;
    if (value !== undefined && jsonText(value) === undefined) {
      return `${key}: expected JSON, got a value that has none, such as a bigint or a circle`;
    }
  }
  return null;
}

/** Returns the SHA-256 of a request's fields, without its model. */
export function requestDigest(request: ModelRequest): string {
  const { instructions, messages, tools, toolChoice, settings, responseFormat } = request;
  const sent = { instructions, messages, tools, toolChoice, settings, responseFormat };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- requests are sent as JSON
  return sha256Hex(canonicalJson(JSON.parse(JSON.stringify(sent)) as JsonObject));
}
