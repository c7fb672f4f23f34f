import { isObject, type JsonObject } from '../../../core/json.js';
import type { ModelReply } from '../../model.js';
import { pickOpaque } from '../../wire/opaque-fields.js';
import {
  getReplayedItems,
  type AssistantPromptMessage,
  type Replay,
} from '../../wire/replayed-items.js';

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
  const own = ofMessage ? [ofMessage] : [];
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
export interface ProviderFields {
  readonly message: JsonObject;
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
  return { message: Object.assign({}, ...ofMessage), calls: new Map(ofCalls) };
}
