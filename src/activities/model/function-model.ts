import type { DecideFunction } from '../../agents/decide-function.js';
import { isObject, type Json } from '../../core/json.js';
import { isModelError, ModelError } from '../../models/model-error.js';
import type { Model, ModelReply } from '../../models/model.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { attributed } from '../../tools/stray-errors.js';

/** A user's decision function in the place of a model: nothing is paid, all else is the same. */
export function functionModel(
  decide: DecideFunction,
  { closing, context }: { closing: boolean; context: Json },
): Model {
  return {
    async call({ instructions, messages, tools }, { signal }) {
      try {
        const given = { instructions, messages, tools, closing, context, signal };
        return replyOf(await attributed('the decide function', () => decide(given)));
      } catch (error) {
        if (isModelError(error)) throw error;
        signal.throwIfAborted();
        const { message } = normalizeError(error);
        const text = `the agent's decide function threw: ${message}`;
        throw new ModelError(text, { kind: 'request', type: 'decide' });
      }
    },
  };
}

const NOTHING_USED = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

function replyOf(decision: unknown): ModelReply {
  if (isObject(decision) && typeof decision['answer'] === 'string') {
    return { text: decision['answer'], calls: [], finish: 'stop', usage: NOTHING_USED };
  }
  const calls = isObject(decision) ? decision['calls'] : undefined;
  if (!Array.isArray(calls) || calls.length === 0 || !calls.every(isCall)) {
    throw new ModelError(
      'the agent\'s decide function must give { answer: "text" } or { calls: [{ name, arguments }] }',
      { kind: 'request', type: 'decide' },
    );
  }
  return {
    text: '',
    calls: calls.map((call) => ({
      name: call.name,
      arguments: JSON.stringify(call.arguments ?? {}),
    })),
    finish: 'calls',
    usage: NOTHING_USED,
  };
}

function isCall(call: unknown): call is { name: string; arguments?: unknown } {
  return isObject(call) && typeof call['name'] === 'string';
}
