import { isObject } from '../../../core/json.js';
import type { FinishReason, ModelReply } from '../../model.js';
import type { ReplySource } from '../../wire/api.js';
import { joinText, toArgumentsText } from '../../wire/content.js';
import { getRequestId, unusableAnswer } from '../../wire/errors.js';
import { parseLogprobs } from '../logprobs.js';
import { getMaker } from '../../wire/replayed-items.js';
import { findUsage, parseUsage } from '../../wire/usage.js';
import { extractProviderFields } from './provider-fields.js';

/**
 * Reads a completion as the model's reply; `value` may be any JSON. Throws only a `ModelError`: an
 * answer without a message is of kind `retry`, one without text or calls is `empty`.
 *
 * The calls of a filtered or refused reply are dropped, so they are never executed.
 */
export function parseCompletion(value: unknown, source: ReplySource): ModelReply {
  const { message, choice } = findMessage(value, source);
  const reason = choice['finish_reason'];
  const logprobs = parseLogprobs(choice['logprobs']);
  const usage = parseUsage(isObject(value) ? findUsage(value) : undefined);
  const requestId = getRequestId(source.headers);
  const optional = {
    ...(usage !== undefined && { usage }),
    ...(requestId !== undefined && { requestId }),
    ...(logprobs !== undefined && { logprobs }),
  };
  const refusal = message['refusal'];
  if (typeof refusal === 'string' && refusal !== '') {
    return { text: refusal, calls: [], finish: 'refused', ...optional };
  }
  if (reason === 'error') {
    throw unusableAnswer(source, {
      type: 'finish_error',
      what: 'returned an incomplete answer',
      text: JSON.stringify(message),
    });
  }
  const text = joinText(message['content']);
  const calls = reason === 'content_filter' ? [] : parseCalls(message, source);
  const finish = toFinish(reason, calls.length > 0);
  if (finish === 'stop' && text === '') {
    throw unusableAnswer(source, {
      kind: 'empty',
      type: 'empty_reply',
      what: 'answered with neither text nor calls',
      text: JSON.stringify(message),
    });
  }
  const provider =
    calls.length === 0 ? undefined : extractProviderFields(message, getMaker(source.place, 'chat'));
  return { text, calls, finish, ...(provider && { provider }), ...optional };
}

function findMessage(
  value: unknown,
  source: ReplySource,
): { readonly message: Record<string, unknown>; readonly choice: Record<string, unknown> } {
  const choices = isObject(value) ? value['choices'] : undefined;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (isObject(choice) && isObject(choice['message'])) {
    return { message: choice['message'], choice };
  }
  throw unusableAnswer(source, {
    type: choice === undefined ? 'empty_choices' : 'no_message',
    what: 'answered without a message',
    text: JSON.stringify(value) ?? 'undefined',
  });
}

function parseCalls(message: Record<string, unknown>, source: ReplySource): ModelReply['calls'] {
  const calls = message['tool_calls'];
  if (!Array.isArray(calls)) return [];
  return calls.map((call: unknown) => {
    const requested = isObject(call) ? call['function'] : undefined;
    if (!isObject(requested) || typeof requested['name'] !== 'string' || requested['name'] === '') {
      throw unusableAnswer(source, {
        type: 'bad_call',
        what: 'requested a call without a name',
        text: JSON.stringify(call),
      });
    }
    return { name: requested['name'], arguments: toArgumentsText(requested['arguments']) };
  });
}

/**
 * Returns the finish reason. For other reasons, which differ between servers, the content of the
 * reply decides.
 */
function toFinish(reason: unknown, hasCalls: boolean): FinishReason {
  if (reason === 'content_filter') return 'filtered';
  if (reason === 'length') return 'length';
  return hasCalls ? 'calls' : 'stop';
}
