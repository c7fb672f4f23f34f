import { isObject, type JsonObject } from '../../core/json.js';
import type { PromptMessage } from '../../core/transcript/messages.js';
import type { ModelReply } from '../model.js';
import { itemsFrom, type Returning } from './replayed-items.js';

type Assistant = Extract<PromptMessage, { readonly role: 'assistant' }>;

/**
 * What some servers of Chat Completions give with a message of calls and refuse the next request
 * without: DeepSeek and others their `reasoning_content`, Gemini the signature of its thoughts with the
 * call that they led to. Undefined where the server sent nothing of it.
 */
export function keptEchoes(
  message: Readonly<Record<string, unknown>>,
  from: string,
): ModelReply['provider'] {
  const { reasoning_content: reasoning, tool_calls: asked } = message;
  const calls: readonly unknown[] = Array.isArray(asked) ? asked : [];
  if (calls.length === 0) return undefined;
  const thought: readonly JsonObject[] =
    typeof reasoning === 'string' && reasoning !== '' ? [{ reasoning_content: reasoning }] : [];
  const signed = calls.flatMap((call, index): readonly JsonObject[] => {
    const extra = isObject(call) ? call['extra_content'] : undefined;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
    return isObject(extra) ? [{ call: index, extra_content: extra as JsonObject }] : [];
  });
  const items = [...thought, ...signed];
  return items.length === 0 ? undefined : { from, items };
}

/** What goes back with a message and with each of its calls, by their places. */
export interface Echoes {
  readonly message: { readonly reasoning_content?: string };
  readonly calls: ReadonlyMap<number, { readonly extra_content: JsonObject }>;
}

/** The echoes that a message has for this server and model; none for a message without calls. */
export function echoesOf(message: Assistant, returning: Returning): Echoes {
  const items = itemsFrom(message, returning) ?? [];
  const reasoning = items.find((item) => 'reasoning_content' in item)?.['reasoning_content'];
  const calls = items.flatMap(({ call, extra_content: extra }) =>
    typeof call === 'number' && isObject(extra) ? [[call, { extra_content: extra }] as const] : [],
  );
  return {
    message: typeof reasoning === 'string' ? { reasoning_content: reasoning } : {},
    calls: new Map(calls),
  };
}
