import { isObject } from '../../../core/json.js';
import type { ModelReply } from '../../model.js';
import type { ReplySource, StreamAssembly } from '../../wire/api.js';
import { MALFORMED } from '../../model-error.js';
import { unusableAnswer } from '../../wire/errors.js';
import { findUsage } from '../../wire/usage.js';
import { parseCompletion } from './reply.js';

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
