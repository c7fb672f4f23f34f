import { isObject, type JsonObject } from '../core/json.js';
import type { SseOptions } from './steps.js';

interface Delta {
  readonly delta: Record<string, unknown>;
  readonly logprobs?: unknown;
  readonly finish: unknown;
}

/** A text in one event. */
export const WHOLE = 2 ** 30;

export function pieces(text: string, size: number): readonly string[] {
  const count = Math.ceil(text.length / size);
  return Array.from({ length: count }, (_, index) => text.slice(index * size, (index + 1) * size));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function callDeltas(call: unknown, index: number, size: number): readonly Delta[] {
  const asked = isObject(call) && isObject(call['function']) ? call['function'] : {};
  const id = isObject(call) ? call['id'] : undefined;
  const extra = isObject(call) ? call['extra_content'] : undefined;
  const begin = {
    index,
    id,
    type: 'function',
    function: { ...asked, arguments: '' },
    extra_content: extra,
  };
  const rest = pieces(textOf(asked['arguments']), size).map((part) => ({
    index,
    function: { arguments: part },
  }));
  return [begin, ...rest].map((piece) => ({ delta: { tool_calls: [piece] }, finish: null }));
}

function deltas(choice: Record<string, unknown>, size: number): readonly Delta[] {
  const message = isObject(choice['message']) ? choice['message'] : {};
  const calls: readonly unknown[] = Array.isArray(message['tool_calls'])
    ? message['tool_calls']
    : [];
  const spoken = (field: string): readonly Delta[] =>
    pieces(textOf(message[field]), size).map((part) => ({
      delta: { [field]: part },
      finish: null,
    }));
  const { logprobs } = choice;
  return [
    { delta: { role: 'assistant' }, finish: null },
    ...spoken('reasoning_content'),
    // All of them with the first piece of text: pieces are cut by characters, not by tokens.
    ...spoken('content').map((piece, index) =>
      index === 0 && logprobs !== undefined ? { ...piece, logprobs } : piece,
    ),
    ...spoken('refusal'),
    ...calls.flatMap((call, index) => callDeltas(call, index, size)),
    { delta: {}, finish: choice['finish_reason'] ?? null },
  ];
}

/** The data of each event, `[DONE]` apart. */
function events(completion: JsonObject, size: number): readonly string[] {
  const { choices, usage, ...head } = completion;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  // What has no choice is no completion; it goes out as the one event that it is.
  if (!isObject(choice)) return [JSON.stringify(completion)];
  const chunk = { ...head, object: 'chat.completion.chunk' };
  return [
    ...deltas(choice, size).map(({ delta, finish, ...told }) =>
      JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason: finish, ...told }] }),
    ),
    ...(usage === undefined ? [] : [JSON.stringify({ ...chunk, choices: [], usage })]),
  ];
}

function withoutEnd(all: readonly string[], hasUsage: boolean): readonly string[] {
  return all.slice(0, hasUsage ? -2 : -1);
}

/** A completion as the text of its server-sent events. */
export function sseText(completion: JsonObject, options: SseOptions = {}): string {
  const all = events(completion, options.charactersPerEvent ?? WHOLE);
  const kept =
    options.endBefore === 'finish'
      ? withoutEnd(all, completion['usage'] !== undefined)
      : [...all, ...(options.endBefore === 'done' ? [] : ['[DONE]'])];
  return writeEvents(
    kept.map((data) => ({ data })),
    options,
  );
}

/** Events as they go over the line. */
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
