import { isObject } from '../../../core/text/json.js';
import { type FinishReason, MALFORMED, type ModelReply } from '../../model.js';
import type { ReplySource, StreamAssembly } from '../../wire/api.js';
import {
  findUsage,
  joinText,
  parseLogprobs,
  parseUsage,
  toArgumentsText,
  toText,
} from '../../wire/content.js';
import { emptyReply, getRequestId, missingMessage, unusableAnswer } from '../../wire/errors.js';
import { getMaker } from '../../wire/opaque-fields.js';
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
    throw emptyReply(source, message);
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

type AnyObject = Readonly<Record<string, unknown>>;

/**
 * Finish reasons of other servers, by those of OpenAI. `malformed`: the server could not read the
 * call that its model wrote.
 */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/malformed|unexpected_tool_call/i, 'malformed'],
  [
    /content_?filter|safety|sensitive|blocklist|prohibited|spii|recitation|moderation|guardrail/i,
    'content_filter',
  ],
  [
    /^(?:max_(?:output_|new_)?tokens|model_length|model_context_window_exceeded|token_limit)$/i,
    'length',
  ],
  [
    /^(?:error|network_error|insufficient_system_resource|abort|aborted|failed|cancelled)$/i,
    'error',
  ],
];

function toReason(reason: unknown): unknown {
  if (typeof reason !== 'string') return reason;
  return REASONS.find(([pattern]) => pattern.test(reason))?.[1] ?? reason;
}

/** Reads a completion in any of the forms that servers send. */
export function readCompletion(value: unknown, source: ReplySource): ModelReply {
  const completion = toCompletion(value);
  const isMalformed = listChoices(completion).some((one) => one['finish_reason'] === 'malformed');
  if (!isMalformed) return parseCompletion(completion, source);
  throw unusableAnswer(source, {
    kind: 'malformed',
    type: MALFORMED,
    what: 'could not read the call that its model wrote',
    text: JSON.stringify(value),
  });
}

/** Returns a completion in OpenAI's form. */
function toCompletion(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { choices, message, done_reason: reason } = value;
  if (Array.isArray(choices)) {
    return { ...value, choices: choices.map((choice: unknown) => toChoice(choice)) };
  }
  if (!isObject(message) || choices !== undefined) return value;
  return { ...value, choices: [toChoice({ message, finish_reason: reason })] };
}

/** Returns a choice with a message: some servers send a text, or the delta of a stream. */
function toChoice(choice: unknown): unknown {
  if (!isObject(choice)) return choice;
  const { message, delta, text } = choice;
  const finish_reason = toReason(choice['finish_reason']);
  const given = [message, delta].find(isObject);
  if (given !== undefined) return { ...choice, message: given, finish_reason };
  const content = [message, text].find((one) => typeof one === 'string');
  return { ...choice, finish_reason, ...(content !== undefined && { message: { content } }) };
}

/** Returns the assembly that also accepts chunks with a text in place of a delta. */
export function acceptOddChunks(assembly: StreamAssembly): StreamAssembly {
  return { ...assembly, add: (chunk) => assembly.add(toChunk(chunk)) };
}

function toChunk(chunk: unknown): unknown {
  if (!isObject(chunk) || !Array.isArray(chunk['choices'])) return chunk;
  const choices: readonly unknown[] = chunk['choices'];
  const isOdd = choices.some((one) => isObject(one) && !isObject(one['delta']) && 'text' in one);
  if (!isOdd) return chunk;
  return {
    ...chunk,
    choices: choices.map((one) =>
      isObject(one) ? { ...one, delta: { content: one['text'] } } : one,
    ),
  };
}

/** Whether a chunk holds a finished message in place of a delta. */
export function isWholeCompletion(chunk: unknown): boolean {
  return listChoices(chunk).some(
    ({ message, delta, finish_reason: reason }) =>
      isObject(message) && !isObject(delta) && typeof reason === 'string' && reason !== '',
  );
}

/** Whether a chunk is the last: it has the usage, and no choice. */
export function isFinalUsage(chunk: unknown): boolean {
  if (!isObject(chunk) || !Array.isArray(chunk['choices'])) return false;
  return chunk['choices'].length === 0 && findUsage(chunk) !== undefined;
}

function listChoices(value: unknown): readonly AnyObject[] {
  const choices: unknown = isObject(value) ? value['choices'] : undefined;
  return Array.isArray(choices) ? choices.filter(isObject) : [];
}
