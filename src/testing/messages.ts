import { isObject, parseJson, type JsonObject } from '../core/json.js';
import type { StubRequest } from './requests.js';
import { splitText, WHOLE, writeEvents } from './sse.js';
import type { SseOptions, Step } from './replies.js';

type Completion = Extract<Step, { readonly type: 'completion' }>;
type AnyObject = Readonly<Record<string, unknown>>;
type Event = JsonObject & { readonly type: string };

const SEAL = 'stub-signature-';

/** Returns true if this stub has signed the thoughts. */
export function isSignedThought({ thinking, signature }: AnyObject): boolean {
  return typeof thinking === 'string' && signature === sign(thinking);
}

function sign(thinking: string): string {
  return SEAL + Buffer.from(thinking).toString('base64');
}

const REASONS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
};

/** Converts a completion to a message of Anthropic's API; anything else stays unchanged. */
export function createMessage(
  { completion, items = [] }: Completion,
  { number, body }: StubRequest,
): JsonObject {
  const { choices, usage } = completion;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (!isObject(choice) || !isObject(choice['message'])) return completion;
  const { message, finish_reason: finish } = choice;
  const thinking = toText(message['reasoning_content']);
  const refusal = toText(message['refusal']);
  const text = toText(message['content']) || refusal;
  const reason = refusal === '' ? (REASONS[toText(finish)] ?? finish) : 'refusal';
  return {
    id: `msg_${number}`,
    type: 'message',
    role: 'assistant',
    model: toText(body['model']),
    content: [
      ...(thinking === '' ? [] : [{ type: 'thinking', thinking, signature: sign(thinking) }]),
      ...items,
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...createCalls(message['tool_calls'], number),
    ],
    stop_reason: typeof reason === 'string' ? reason : null,
    stop_sequence: null,
    ...(isObject(usage) && { usage: convertUsage(usage) }),
  };
}

function createCalls(calls: unknown, number: number): readonly JsonObject[] {
  const list: readonly unknown[] = Array.isArray(calls) ? calls : [];
  return list.filter(isObject).map((call, index) => {
    const requested = isObject(call['function']) ? call['function'] : {};
    const text = toText(requested['arguments']);
    const input = parseJson(text);
    return {
      type: 'tool_use',
      id: `toolu_${number}_${index}`,
      name: toText(requested['name']),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
      input: isObject(input) ? (input as JsonObject) : text,
    };
  });
}

function convertUsage(usage: AnyObject): JsonObject {
  const { prompt_tokens_details: details } = usage;
  const detail = (name: string): number => (isObject(details) ? Number(details[name] ?? 0) : 0);
  const read = detail('cached_tokens');
  const written = detail('cache_write_tokens');
  return {
    input_tokens: Number(usage['prompt_tokens']) - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: Number(usage['completion_tokens']),
  };
}

/**
 * Writes a message as the server-sent events of Anthropic's API; anything else becomes a single
 * event.
 */
export function writeMessageEvents(message: JsonObject, options: SseOptions = {}): string {
  if (!Array.isArray(message['content'])) {
    return writeEvents([{ data: JSON.stringify(message) }], options);
  }
  const all = createEvents(message, options.charactersPerEvent ?? WHOLE);
  const end = { finish: -2, done: -1 } as const;
  const kept = options.endBefore === undefined ? all : all.slice(0, end[options.endBefore]);
  const events = kept.map((event) => ({ event: event.type, data: JSON.stringify(event) }));
  return writeEvents(events, options);
}

function createEvents(message: JsonObject, size: number): readonly Event[] {
  const { usage, stop_reason: reason, content } = message;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is part of a JSON object
  const blocks = content as readonly JsonObject[];
  const started = {
    ...message,
    content: [],
    stop_reason: null,
    ...(isObject(usage) && { usage: { ...usage, output_tokens: 1 } }),
  };
  return [
    { type: 'message_start', message: started },
    { type: 'ping' },
    ...blocks.flatMap((block, index) => createBlockEvents(block, index, size)),
    {
      type: 'message_delta',
      delta: { stop_reason: reason, stop_sequence: null },
      ...(usage !== undefined && { usage }),
    },
    { type: 'message_stop' },
  ];
}

function createBlockEvents(block: JsonObject, index: number, size: number): readonly Event[] {
  const begin = (content: JsonObject): Event => ({
    type: 'content_block_start',
    index,
    content_block: content,
  });
  const delta = (type: string, fields: JsonObject): Event => ({
    type: 'content_block_delta',
    index,
    delta: { type, ...fields },
  });
  const end: Event = { type: 'content_block_stop', index };
  const parts = (text: string): readonly string[] => splitText(text, size);
  switch (block['type']) {
    case 'text':
      return [
        begin({ ...block, text: '' }),
        ...parts(toText(block['text'])).map((text) => delta('text_delta', { text })),
        end,
      ];
    case 'thinking':
      return [
        begin({ ...block, thinking: '', signature: '' }),
        ...parts(toText(block['thinking'])).map((thinking) =>
          delta('thinking_delta', { thinking }),
        ),
        delta('signature_delta', { signature: toText(block['signature']) }),
        end,
      ];
    case 'tool_use': {
      const { input } = block;
      const json = typeof input === 'string' ? input : JSON.stringify(input);
      const sent = json === '{}' ? [''] : ['', ...parts(json)];
      return [
        begin({ ...block, input: {} }),
        ...sent.map((partial) => delta('input_json_delta', { partial_json: partial })),
        end,
      ];
    }
    default:
      return [begin(block), end];
  }
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
