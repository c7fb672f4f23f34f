import { isObject, type JsonObject } from '../core/json.js';
import type { StubRequest } from './requests.js';
import type { Step } from './replies.js';

type Completion = Extract<Step, { readonly type: 'completion' }>;
type AnyObject = Readonly<Record<string, unknown>>;

const SEAL = 'gAAAAAstub.';

const REASONS: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

/** Returns the reasoning; undefined if this stub has not encrypted it. */
export function decrypt(encrypted: string): string | undefined {
  if (!encrypted.startsWith(SEAL)) return undefined;
  return Buffer.from(encrypted.slice(SEAL.length), 'base64').toString();
}

/** Converts a completion to the response to this request; anything else stays unchanged. */
export function createResponse(
  { completion, items = [] }: Completion,
  request: StubRequest,
): JsonObject {
  const { choices } = completion;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (!isObject(choice) || !isObject(choice['message'])) return completion;
  const { message } = choice;
  const { number } = request;
  return {
    id: `resp_${number}`,
    object: 'response',
    created_at: 0,
    ...toStatus(choice['finish_reason']),
    error: null,
    model: 'stub',
    output: [
      ...createReasoning(message, request),
      ...items,
      ...createMessage(message, choice, number),
      ...createCalls(message, number),
    ],
    parallel_tool_calls: true,
    previous_response_id: null,
    store: false,
    usage: convertUsage(completion['usage']),
  };
}

function toStatus(finish: unknown): JsonObject {
  const reason = REASONS[toText(finish)];
  return reason === undefined
    ? { status: finish === null ? 'in_progress' : 'completed', incomplete_details: null }
    : { status: 'incomplete', incomplete_details: { reason } };
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function createReasoning(message: AnyObject, { number, body }: StubRequest): readonly JsonObject[] {
  const text = toText(message['reasoning_content']);
  if (text === '') return [];
  const { include } = body;
  const isAsked = Array.isArray(include) && include.includes('reasoning.encrypted_content');
  return [
    {
      id: `rs_${number}`,
      type: 'reasoning',
      summary: [{ type: 'summary_text', text }],
      ...(isAsked && { encrypted_content: encrypt(text) }),
    },
  ];
}

function encrypt(text: string): string {
  return SEAL + Buffer.from(text).toString('base64');
}

function createMessage(
  message: AnyObject,
  choice: AnyObject,
  number: number,
): readonly JsonObject[] {
  const { logprobs } = choice;
  const tokens = isObject(logprobs) ? logprobs['content'] : undefined;
  const text = toText(message['content']);
  const refusal = toText(message['refusal']);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is part of a JSON object
  const probabilities = (Array.isArray(tokens) ? tokens : []) as readonly JsonObject[];
  const part: JsonObject =
    refusal === ''
      ? { type: 'output_text', annotations: [], logprobs: probabilities, text }
      : { type: 'refusal', refusal };
  if (text === '' && refusal === '') return [];
  const id = `msg_${number}`;
  return [{ id, type: 'message', status: 'completed', role: 'assistant', content: [part] }];
}

function createCalls(message: AnyObject, number: number): readonly JsonObject[] {
  const calls: readonly unknown[] = Array.isArray(message['tool_calls'])
    ? message['tool_calls']
    : [];
  return calls.filter(isObject).map((call, index) => {
    const requested = isObject(call['function']) ? call['function'] : {};
    return {
      id: `fc_${number}_${index}`,
      type: 'function_call',
      status: 'completed',
      arguments: toText(requested['arguments']),
      call_id: toText(call['id']),
      name: toText(requested['name']),
    };
  });
}

function convertUsage(usage: unknown): JsonObject | null {
  if (!isObject(usage)) return null;
  const detail = (part: string, name: string): number => {
    const details = usage[part];
    return isObject(details) ? Number(details[name] ?? 0) : 0;
  };
  return {
    input_tokens: Number(usage['prompt_tokens']),
    input_tokens_details: { cached_tokens: detail('prompt_tokens_details', 'cached_tokens') },
    output_tokens: Number(usage['completion_tokens']),
    output_tokens_details: {
      reasoning_tokens: detail('completion_tokens_details', 'reasoning_tokens'),
    },
    total_tokens: Number(usage['total_tokens']),
  };
}
