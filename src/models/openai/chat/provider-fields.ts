import { type Json, type JsonObject, isObject } from '../../../core/text/json.js';
import type { ModelReply } from '../../model.js';
import type { ContentPart } from '../../wire/attachment-parts.js';
import { joinText } from '../../wire/content.js';
import {
  type AssistantPromptMessage,
  type Replay,
  getReplayedItems,
  pickOpaque,
} from '../../wire/opaque-fields.js';

/** The fields of a message that perdure writes itself, or that say nothing to a later request. */
export const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  'role',
  'content',
  'refusal',
  'tool_calls',
  'function_call',
  'audio',
  'annotations',
  'name',
  'call',
]);

/** The fields of a call that perdure writes itself. */
export const CALL_FIELDS: ReadonlySet<string> = new Set([
  'index',
  'id',
  'type',
  'function',
  'call',
  'name',
  'arguments',
]);

/** The fields of a call's `function` that perdure writes itself. */
export const FUNCTION_FIELDS: ReadonlySet<string> = new Set(['name', 'arguments']);

/** Plain thoughts: they only have to go back with calls, and some servers refuse them elsewhere. */
const THOUGHTS = ['reasoning_content', 'reasoning'] as const;

/** A longer id holds data for the server, such as a signature. */
const MAX_ID_CHARACTERS = 64;

/**
 * Extracts the fields that go back with a message: all that perdure does not know, such as thoughts,
 * encrypted reasoning, and signatures. Without them, some servers refuse the next request. The
 * server's own id of a call is one of them if these fields refer to it, or if it holds data. Returns
 * undefined if there are none.
 */
export function extractProviderFields(
  message: Readonly<Record<string, unknown>>,
  { from, calls }: { readonly from: string; readonly calls: readonly Record<string, unknown>[] },
): ModelReply['provider'] {
  const known = calls.length > 0 ? MESSAGE_FIELDS : new Set([...MESSAGE_FIELDS, ...THOUGHTS]);
  const ofMessage = pickOpaque(message, known);
  const ofCalls = calls.map((call): JsonObject => {
    const requested = call['function'];
    const ofFunction = isObject(requested) ? pickOpaque(requested, FUNCTION_FIELDS) : undefined;
    return { ...pickOpaque(call, CALL_FIELDS), ...(ofFunction && { function: ofFunction }) };
  });
  const content = extractParts(message['content']);
  const own = ofMessage || content ? [{ ...ofMessage, ...(content && { content }) }] : [];
  const referred = listShortTexts([...own, ...ofCalls]);
  const items = [
    ...own,
    ...calls.flatMap(({ id }, index): readonly JsonObject[] => {
      const isNeeded =
        typeof id === 'string' && (id.length > MAX_ID_CHARACTERS || referred.has(id));
      const fields = { ...ofCalls[index], ...(isNeeded && { id }) };
      return Object.keys(fields).length > 0 ? [{ call: index, ...fields }] : [];
    }),
  ];
  return items.length === 0 ? undefined : { from, items };
}

/**
 * Returns the parts of a content that are no text, such as Mistral's thoughts, with the number of
 * characters in place of each text; undefined if there are only texts.
 */
function extractParts(content: unknown): Json[] | undefined {
  if (!Array.isArray(content)) return undefined;
  const parts: Json[] = [];
  let isOpaque = false;
  for (const part of content) {
    const text = joinText([part]);
    const last = parts.at(-1);
    if (text !== '') {
      if (typeof last === 'number') parts[parts.length - 1] = last + text.length;
      else parts.push(text.length);
    } else if (isOpaquePart(part)) {
      isOpaque = true;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
      parts.push(part as JsonObject);
    }
  }
  return isOpaque ? parts : undefined;
}

/** Whether a part of a content is neither a text nor empty. */
export function isOpaquePart(part: unknown): part is Record<string, unknown> {
  return isObject(part) && typeof part['text'] !== 'string' && Object.keys(part).length > 0;
}

/** Returns the content of a message with the parts that its server sent between its texts. */
export function restoreParts(text: string, places: readonly Json[]): readonly AssistantPart[] {
  const given = places.filter((place) => typeof place === 'number');
  // The places of a text that was changed since, such as by redaction, are unknown.
  const isSame = given.reduce((sum, length) => sum + length, 0) === text.length;
  let at = 0;
  const parts = places.flatMap((place): readonly AssistantPart[] => {
    if (typeof place !== 'number') return isObject(place) ? [place] : [];
    const from = at;
    at = isSame ? at + place : text.length;
    return from === at ? [] : [{ type: 'text', text: text.slice(from, at) }];
  });
  return at < text.length ? [...parts, { type: 'text', text }] : parts;
}

/** Returns the texts in some fields that may be ids, at any depth. */
function listShortTexts(opaque: readonly JsonObject[]): ReadonlySet<unknown> {
  const texts = new Set<unknown>();
  const waiting: unknown[] = [...opaque];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === 'string' && value !== '' && value.length <= MAX_ID_CHARACTERS) {
      texts.add(value);
    }
    if (typeof value !== 'object' || value === null) continue;
    for (const inner of Object.values(value)) waiting.push(inner);
  }
  return texts;
}

/** The fields that go back with a message and, by place, with each of its calls. */
interface ProviderFields {
  readonly message: JsonObject;
  /** See `restoreParts`; absent if the content was a text. */
  readonly content?: readonly Json[];
  readonly calls: ReadonlyMap<number, CallFields>;
}

interface CallFields {
  /** The server's own id, if it needs that one back. */
  readonly id?: string;
  readonly function: JsonObject;
  readonly call: JsonObject;
}

/** Returns the fields of a message that go back to this server and model. */
export function getProviderFields(message: AssistantPromptMessage, replay: Replay): ProviderFields {
  const items = getReplayedItems(message, replay) ?? [];
  const ofMessage = items
    .filter(({ call }) => call === undefined)
    .map((item) => pickOpaque(item, MESSAGE_FIELDS));
  const ofCalls = items.flatMap((item): readonly (readonly [number, CallFields])[] => {
    const { call, id, function: requested } = item;
    if (typeof call !== 'number') return [];
    const ofFunction = isObject(requested) ? pickOpaque(requested, FUNCTION_FIELDS) : undefined;
    const fields = { call: pickOpaque(item, CALL_FIELDS) ?? {}, function: ofFunction ?? {} };
    return [[call, typeof id === 'string' ? { ...fields, id } : fields]];
  });
  const content = items.map((item) => item['content']).find((one) => Array.isArray(one));
  return {
    message: Object.assign({}, ...ofMessage),
    ...(content && { content }),
    calls: new Map(ofCalls),
  };
}

/** A message in the form of Chat Completions. */
export type ChatMessage =
  | { readonly role: 'system' | 'developer'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly ContentPart[] }
  | AssistantChatMessage
  | {
      readonly role: 'tool';
      readonly tool_call_id: string;
      readonly name?: string;
      readonly content: string;
    };

/** A reply of the model, with the fields that its server needs back. */
interface AssistantChatMessage {
  readonly role: 'assistant';
  /** Absent in the form for servers that accept neither null nor an empty text. */
  readonly content?: string | null | readonly AssistantPart[];
  readonly tool_calls?: readonly ChatCall[];
  readonly [opaque: string]: unknown;
}

/** A part of a reply: a text, or what its server sent beside it. */
type AssistantPart = { readonly type: 'text'; readonly text: string } | JsonObject;

/** A tool call in the form of Chat Completions, with the fields that its server needs back. */
export interface ChatCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly arguments: string;
    readonly [opaque: string]: unknown;
  };
  readonly [opaque: string]: unknown;
}
