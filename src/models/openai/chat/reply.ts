import { isObject } from '../../../core/json.js';
import type { FinishReason, ModelReply } from '../../model.js';
import type { ReplySource } from '../../wire/api.js';
import { joinText, toArgumentsText, toText } from '../../wire/content.js';
import { getRequestId, missingMessage, unusableAnswer } from '../../wire/errors.js';
import { parseLogprobs } from '../logprobs.js';
import { getMaker } from '../../wire/replayed-items.js';
import { findUsage, parseUsage } from '../../wire/usage.js';
import { extractProviderFields } from './provider-fields.js';

/**
 * Reads a completion as the model's reply; `value` may be any JSON. Throws only a `ModelError`: a
 * value that is no answer is of kind `retry`, an answer without a message is `malformed`, and one
 * without text or calls is `empty`.
 *
 * The calls of a filtered or refused reply are dropped, so they are never executed.
 */
export function parseCompletion(value: unknown, source: ReplySource): ModelReply {
  const { message, choice, reason } = findMessage(value, source);
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
  const wireCalls = reason === 'content_filter' ? [] : listCalls(message);
  const calls = wireCalls.map((call) => parseCall(call, source));
  const finish = toFinish(reason, calls.length > 0);
  if (finish === 'stop' && text === '') {
    throw unusableAnswer(source, {
      kind: 'empty',
      type: 'empty_reply',
      what: 'answered with neither text nor calls',
      text: JSON.stringify(message),
    });
  }
  const from = getMaker(source.place, 'chat');
  const provider =
    reason === 'content_filter'
      ? undefined
      : extractProviderFields(message, { from, calls: wireCalls });
  return { text, calls, finish, ...(provider && { provider }), ...optional };
}

interface FoundMessage {
  readonly message: Record<string, unknown>;
  readonly choice: Record<string, unknown>;
  readonly reason: unknown;
}

function findMessage(value: unknown, source: ReplySource): FoundMessage {
  const found: readonly unknown[] =
    isObject(value) && Array.isArray(value['choices']) ? value['choices'] : [];
  const choices = found.filter(hasMessage);
  const [choice] = choices;
  if (choice !== undefined) {
    return { message: joinMessages(choices), choice, reason: joinReasons(choices) };
  }
  throw missingMessage(source, value, {
    isPaid: isObject(value) && (Array.isArray(value['choices']) || isObject(value['usage'])),
    type: found.length === 0 ? 'empty_choices' : 'no_message',
  });
}

type Choice = Record<string, unknown> & { readonly message: Record<string, unknown> };

function hasMessage(choice: unknown): choice is Choice {
  return isObject(choice) && isObject(choice['message']);
}

/**
 * Joins the choices of one answer. perdure asks for one, but some servers send the text in the first
 * and the calls in others. The first text counts, and every call once.
 */
function joinMessages(choices: readonly Choice[]): Record<string, unknown> {
  const [first, ...others] = choices.map(({ message }) => message);
  if (first === undefined || others.length === 0) return first ?? {};
  const joined: Record<string, unknown> = { ...first };
  for (const other of others) {
    for (const [key, field] of Object.entries(other)) {
      if (joined[key] === undefined || joined[key] === null || joined[key] === '') {
        joined[key] = field;
      }
    }
  }
  const calls = [first, ...others].flatMap(listCalls);
  const seen = new Set<string>();
  const once = calls.filter((call) => {
    const key = JSON.stringify(toText(call['id']) === '' ? call['function'] : call['id']);
    return !seen.has(key) && seen.add(key);
  });
  return { ...joined, tool_calls: once };
}

/** Returns the reason of an answer; one by which it is incomplete comes first. */
function joinReasons(choices: readonly Choice[]): unknown {
  const reasons = choices.map((choice) => choice['finish_reason']);
  return (
    ['content_filter', 'error', 'length'].find((reason) => reasons.includes(reason)) ??
    reasons.find((reason) => typeof reason === 'string')
  );
}

/**
 * Lists the calls of a message: `tool_calls`, or the `function_call` of older servers. Entries with
 * neither name nor arguments do not count beside others.
 */
function listCalls(message: Readonly<Record<string, unknown>>): readonly Record<string, unknown>[] {
  const { tool_calls: listed, function_call: old } = message;
  const entries: readonly unknown[] = Array.isArray(listed) ? listed : [listed ?? []].flat();
  const requested = entries.filter(isObject).filter((call) => {
    const { name, arguments: args } = getFunction(call);
    return toText(name).trim() !== '' || (args ?? '') !== '';
  });
  if (requested.length > 0) return requested;
  if (isObject(old)) return [{ function: old }];
  return entries.map((entry) => (isObject(entry) ? entry : {}));
}

/** Returns the name and arguments of a call; some servers omit the object around them. */
function getFunction(call: Record<string, unknown>): Record<string, unknown> {
  return isObject(call['function']) ? call['function'] : call;
}

function parseCall(
  call: Record<string, unknown>,
  source: ReplySource,
): ModelReply['calls'][number] {
  const requested = getFunction(call);
  const name = toText(requested['name']).trim();
  if (name === '') {
    throw unusableAnswer(source, {
      kind: 'malformed',
      type: 'bad_call',
      what: 'requested a call without a name',
      text: JSON.stringify(call),
    });
  }
  return { name, arguments: toArgumentsText(requested['arguments'] ?? requested['parameters']) };
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
