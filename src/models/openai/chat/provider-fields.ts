import { isObject, type JsonObject } from '../../../core/json.js';
import type { ModelReply } from '../../model.js';
import {
  getReplayedItems,
  type AssistantPromptMessage,
  type Replay,
} from '../../wire/replayed-items.js';

/**
 * Extracts the fields that some servers send with a message of calls, and without which they refuse
 * the next request: `reasoning_content` of DeepSeek and others, and Gemini's thought signatures,
 * which belong to a call. Returns undefined if there are none.
 */
export function extractProviderFields(
  message: Readonly<Record<string, unknown>>,
  from: string,
): ModelReply['provider'] {
  const { reasoning_content: reasoning, tool_calls: requested } = message;
  const calls: readonly unknown[] = Array.isArray(requested) ? requested : [];
  if (calls.length === 0) return undefined;
  const ofMessage: readonly JsonObject[] =
    typeof reasoning === 'string' && reasoning !== '' ? [{ reasoning_content: reasoning }] : [];
  const ofCalls = calls.flatMap((call, index): readonly JsonObject[] => {
    const extra = isObject(call) ? call['extra_content'] : undefined;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
    return isObject(extra) ? [{ call: index, extra_content: extra as JsonObject }] : [];
  });
  const items = [...ofMessage, ...ofCalls];
  return items.length === 0 ? undefined : { from, items };
}

/** The fields that go back with a message and, by place, with each of its calls. */
export interface ProviderFields {
  readonly message: { readonly reasoning_content?: string };
  readonly calls: ReadonlyMap<number, { readonly extra_content: JsonObject }>;
}

/** Returns the fields of a message that go back to this server and model. */
export function getProviderFields(message: AssistantPromptMessage, replay: Replay): ProviderFields {
  const items = getReplayedItems(message, replay) ?? [];
  const reasoning = items.find((item) => 'reasoning_content' in item)?.['reasoning_content'];
  const calls = items.flatMap(({ call, extra_content: extra }) =>
    typeof call === 'number' && isObject(extra) ? [[call, { extra_content: extra }] as const] : [],
  );
  return {
    message: typeof reasoning === 'string' ? { reasoning_content: reasoning } : {},
    calls: new Map(calls),
  };
}
