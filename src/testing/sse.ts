import { isObject, type JsonObject } from '../core/json.js';
import type { SseOptions } from './replies.js';

interface Delta {
  readonly delta: Record<string, unknown>;
  readonly logprobs?: unknown;
  readonly finish: unknown;
}

/** Puts a whole text in one event. */
export const WHOLE = 2 ** 30;

export function splitText(text: string, size: number): readonly string[] {
  const count = Math.ceil(text.length / size);
  return Array.from({ length: count }, (_, index) => text.slice(index * size, (index + 1) * size));
}

/** Writes a completion as server-sent events. */
export function writeCompletion(completion: JsonObject, options: SseOptions = {}): string {
  const all = createEvents(completion, options.charactersPerEvent ?? WHOLE);
  const kept =
    options.endBefore === 'finish'
      ? dropEnd(all, completion['usage'] !== undefined)
      : [...all, ...(options.endBefore === 'done' ? [] : ['[DONE]'])];
  return writeEvents(
    kept.map((data) => ({ data })),
    options,
  );
}

/** Returns the data of each event, without `[DONE]`. */
function createEvents(completion: JsonObject, size: number): readonly string[] {
  const { choices, usage, ...head } = completion;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  // Anything without a choice is not a completion and becomes a single event.
  if (!isObject(choice)) return [JSON.stringify(completion)];
  const chunk = { ...head, object: 'chat.completion.chunk' };
  return [
    ...createDeltas(choice, size).map(({ delta, finish, ...rest }) =>
      JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason: finish, ...rest }] }),
    ),
    ...(usage === undefined ? [] : [JSON.stringify({ ...chunk, choices: [], usage })]),
  ];
}

function createDeltas(choice: Record<string, unknown>, size: number): readonly Delta[] {
  const message = isObject(choice['message']) ? choice['message'] : {};
  const calls: readonly unknown[] = Array.isArray(message['tool_calls'])
    ? message['tool_calls']
    : [];
  const textDeltas = (field: string): readonly Delta[] =>
    splitText(toText(message[field]), size).map((part) => ({
      delta: { [field]: part },
      finish: null,
    }));
  const { logprobs } = choice;
  return [
    { delta: { role: 'assistant' }, finish: null },
    ...textDeltas('reasoning_content'),
    // All of them come with the first part of the text, which is split by characters, not tokens.
    ...textDeltas('content').map((part, index) =>
      index === 0 && logprobs !== undefined ? { ...part, logprobs } : part,
    ),
    ...textDeltas('refusal'),
    ...calls.flatMap((call, index) => createCallDeltas(call, index, size)),
    { delta: {}, finish: choice['finish_reason'] ?? null },
  ];
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function createCallDeltas(call: unknown, index: number, size: number): readonly Delta[] {
  const requested = isObject(call) && isObject(call['function']) ? call['function'] : {};
  const id = isObject(call) ? call['id'] : undefined;
  const extra = isObject(call) ? call['extra_content'] : undefined;
  const begin = {
    index,
    id,
    type: 'function',
    function: { ...requested, arguments: '' },
    extra_content: extra,
  };
  const rest = splitText(toText(requested['arguments']), size).map((part) => ({
    index,
    function: { arguments: part },
  }));
  return [begin, ...rest].map((entry) => ({ delta: { tool_calls: [entry] }, finish: null }));
}

function dropEnd(all: readonly string[], hasUsage: boolean): readonly string[] {
  return all.slice(0, hasUsage ? -2 : -1);
}

/** Writes server-sent events. */
export function writeEvents(
  all: readonly { readonly event?: string; readonly data: string }[],
  { lineEnd = '\n', comments = false, malformed, twice = false }: SseOptions,
): string {
  return all
    .map(({ event, data }, number) => {
      const sent = number === malformed?.event ? malformed.data : data;
      const comment = comments ? `: still here${lineEnd}` : '';
      const name = event === undefined ? '' : `event: ${event}${lineEnd}`;
      return `${comment}${name}data: ${sent}${lineEnd}${lineEnd}`.repeat(twice ? 2 : 1);
    })
    .join('');
}
