import { type JsonObject, isObject, parseJson } from '../core/text/json.js';
import { type SseOptions, type Step, replyRaw } from './replies.js';
import { WHOLE, splitText, writeEvents } from './script.js';
import { type StubRequest, listBlocks, listObjects, toText } from './wire-input.js';

type Completion = Extract<Step, { readonly type: 'completion' }>;
type AnyObject = Readonly<Record<string, unknown>>;
type Event = JsonObject & { readonly type: string };

const SEAL = 'stub-signature-';

/** Returns true if this stub has signed the thoughts. */
function isSignedThought({ thinking, signature }: AnyObject): boolean {
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

/**
 * Returns the refusal of a request that Anthropic's API would refuse: without a key or
 * `max_tokens`, with roles that do not alternate, unpaired calls and results, empty texts, or
 * thoughts that were changed.
 */
export function refuseMessages({ headers, body }: StubRequest): Step | undefined {
  if (headers['x-api-key'] === undefined && headers.authorization === undefined) {
    return refuse(401, 'authentication_error', 'An API key is required.');
  }
  if (headers['anthropic-version'] === undefined) {
    return refuse(400, 'invalid_request_error', 'anthropic-version: header is required');
  }
  const message = findFault(body);
  return message === undefined ? undefined : refuse(400, 'invalid_request_error', message);
}

function refuse(status: number, type: string, message: string): Step {
  const body = JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_stub' });
  return replyRaw(body, { status, headers: { 'request-id': 'req_stub' } }).wire;
}

function findFault(body: AnyObject): string | undefined {
  const { max_tokens: limit, thinking, tool_choice: choice } = body;
  if (!Number.isSafeInteger(limit)) return 'max_tokens: Field required';
  const messages = listObjects(body['messages']);
  if (messages.length === 0) return 'messages: at least one message is required';
  const isForced = isObject(choice) && choice['type'] === 'any';
  if (isForced && isObject(thinking) && thinking['type'] !== 'disabled') {
    return 'Thinking may not be enabled when tool_choice forces tool use.';
  }
  const marks = JSON.stringify(body).split('"cache_control"').length - 1;
  if (marks > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`;
  const hasCalls = messages.some((message) => listUses(message).length > 0);
  if (hasCalls && listObjects(body['tools']).length === 0) {
    return 'Requests which have `tool_use` or `tool_result` blocks in their content must define tools.';
  }
  return messages
    .map((message, index) => findMessageFault(message, index, messages))
    .find((fault) => fault !== undefined);
}

function findMessageFault(
  message: AnyObject,
  index: number,
  messages: readonly AnyObject[],
): string | undefined {
  const place = `messages.${index}`;
  const role = index % 2 === 0 ? 'user' : 'assistant';
  if (message['role'] !== role)
    return `${place}: roles must alternate between "user" and "assistant"`;
  const blocks = listBlocks(message);
  if (blocks.length === 0) return `${place}: all messages must have non-empty content`;
  const last = blocks.at(-1)?.['type'];
  if (last === 'thinking' || last === 'redacted_thinking') {
    return `${place}: The final block in an assistant message cannot be \`thinking\`.`;
  }
  const empty = blocks.findIndex(({ type, text }) => type === 'text' && String(text).trim() === '');
  if (empty >= 0) return `${place}: text content blocks must contain non-whitespace text`;
  const changed = blocks.findIndex(
    (block) => block['type'] === 'thinking' && !isSignedThought(block),
  );
  if (changed >= 0)
    return `${place}.content.${changed}: Invalid \`signature\` in \`thinking\` block`;
  return findUnpaired(blocks, { place, before: messages[index - 1], after: messages[index + 1] });
}

function findUnpaired(
  blocks: readonly AnyObject[],
  {
    place,
    before,
    after,
  }: {
    readonly place: string;
    readonly before: AnyObject | undefined;
    readonly after: AnyObject | undefined;
  },
): string | undefined {
  const answered = after === undefined ? [] : listResults(after);
  const open = listUses({ content: blocks }).find((id) => !answered.includes(id));
  if (open !== undefined) {
    return `${place}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${display(open)}`;
  }
  const uses = before === undefined ? [] : listUses(before);
  const orphan = listResults({ content: blocks }).find((id) => !uses.includes(id));
  if (orphan === undefined) return undefined;
  return `${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${display(orphan)}`;
}

function display(id: unknown): string {
  return typeof id === 'string' ? id : JSON.stringify(id);
}

function listUses(message: AnyObject): readonly unknown[] {
  return listBlocks(message).flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []));
}

function listResults(message: AnyObject): readonly unknown[] {
  return listBlocks(message).flatMap((block) =>
    block['type'] === 'tool_result' ? [block['tool_use_id']] : [],
  );
}
