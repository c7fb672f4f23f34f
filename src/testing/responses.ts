import { type JsonObject, isObject } from '../core/text/json.js';
import { type SseOptions, type Step, replyError } from './replies.js';
import { WHOLE, splitText, writeEvents } from './script.js';
import { type StubRequest, listItems, toText } from './wire-input.js';

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

type Event = JsonObject & { readonly type: string };

/** The names of the events of a text: its beginning, its deltas, its end. */
interface TextEvents {
  readonly part: string;
  readonly text: string;
  /** The field of the part, and of its last event, with the text. */
  readonly field: 'text' | 'refusal';
  readonly index: 'content_index' | 'summary_index';
}

const TEXT_EVENTS: Readonly<Record<string, TextEvents>> = {
  output_text: {
    part: 'content_part',
    text: 'output_text',
    field: 'text',
    index: 'content_index',
  },
  refusal: { part: 'content_part', text: 'refusal', field: 'refusal', index: 'content_index' },
  summary_text: {
    part: 'reasoning_summary_part',
    text: 'reasoning_summary_text',
    field: 'text',
    index: 'summary_index',
  },
};

/** Writes a response as server-sent events; anything else becomes a single event. */
export function writeResponse(response: JsonObject, options: SseOptions = {}): string {
  const isResponse = Array.isArray(response['output']);
  const all = isResponse ? createEvents(response, options.charactersPerEvent ?? WHOLE) : [];
  const kept = options.endBefore === 'finish' ? all.slice(0, -1) : all;
  const numbered = kept.map((event, number) => ({
    event: event.type,
    data: JSON.stringify({ ...event, sequence_number: number }),
  }));
  return writeEvents(isResponse ? numbered : [{ data: JSON.stringify(response) }], options);
}

function createEvents(response: JsonObject, size: number): readonly Event[] {
  const started = { ...response, status: 'in_progress', output: [], usage: null };
  const output = listObjects(response['output']);
  return [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...output.flatMap((item, index) => createItemEvents(item, index, size)),
    { type: `response.${toText(response['status'])}`, response },
  ];
}

function listObjects(value: unknown): readonly JsonObject[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is part of a JSON object
  return (Array.isArray(value) ? value.filter(isObject) : []) as readonly JsonObject[];
}

function createItemEvents(item: JsonObject, index: number, size: number): readonly Event[] {
  const place = { output_index: index, item_id: item['id'] };
  const wrap = (added: JsonObject, within: readonly Event[]): readonly Event[] => [
    { type: 'response.output_item.added', output_index: index, item: added },
    ...within,
    { type: 'response.output_item.done', output_index: index, item },
  ];
  const parts = (field: string): readonly Event[] =>
    listObjects(item[field]).flatMap((part, number) => createPartEvents(part, number, place, size));
  switch (item['type']) {
    case 'message':
      return wrap({ ...item, status: 'in_progress', content: [] }, parts('content'));
    case 'reasoning':
      return wrap({ ...item, summary: [] }, parts('summary'));
    case 'function_call': {
      const args = toText(item['arguments']);
      const type = 'response.function_call_arguments';
      return wrap({ ...item, status: 'in_progress', arguments: '' }, [
        ...splitText(args, size).map((delta) => ({ type: `${type}.delta`, ...place, delta })),
        { type: `${type}.done`, ...place, arguments: args },
      ]);
    }
    default:
      return wrap({ ...item, status: 'in_progress' }, []);
  }
}

function createPartEvents(
  part: JsonObject,
  number: number,
  place: JsonObject,
  size: number,
): Event[] {
  const names = TEXT_EVENTS[toText(part['type'])];
  if (names === undefined) return [];
  const { field } = names;
  const at = { ...place, [names.index]: number };
  const text = toText(part[field]);
  return [
    { type: `response.${names.part}.added`, ...at, part: { ...part, [field]: '' } },
    ...splitText(text, size).map((delta) => ({
      type: `response.${names.text}.delta`,
      ...at,
      delta,
    })),
    { type: `response.${names.text}.done`, ...at, [field]: text },
    { type: `response.${names.part}.done`, ...at, part },
  ];
}

/**
 * Describes why the API would refuse the actions on a screen in these items; undefined if it would
 * not.
 */
function findScreenFault(items: readonly Item[]): string | undefined {
  const outputs = items.filter(({ type }) => type === 'computer_call_output');
  const calls = items.filter(({ type }) => type === 'computer_call');
  for (const call of calls) {
    const output = outputs.find(({ call_id: id }) => id === call['call_id']);
    if (output === undefined)
      return `No tool output found for computer call ${String(call['call_id'])}.`;
    const fault = findOutputFault(call, output);
    if (fault !== undefined) return fault;
  }
  const orphan = outputs.find(({ call_id: id }) => !calls.some((call) => call['call_id'] === id));
  if (orphan === undefined) return undefined;
  return `No tool call found for computer call with call_id ${String(orphan['call_id'])}.`;
}

function findOutputFault(call: Item, output: Item): string | undefined {
  const { call_id: id } = call;
  const screenshot = isObject(output['output']) ? output['output'] : {};
  const { type, image_url: url } = screenshot;
  if (type !== 'computer_screenshot' || typeof url !== 'string' || !/^(data:|https:)/.test(url)) {
    return `Computer call output for ${String(id)} has no screenshot.`;
  }
  const acknowledged = listIds(output['acknowledged_safety_checks']);
  const open = listIds(call['pending_safety_checks']).find(
    (check) => !acknowledged.includes(check),
  );
  if (open === undefined) return undefined;
  return `The following safety checks have not been acknowledged: ${JSON.stringify(open)}.`;
}

function listIds(checks: unknown): readonly unknown[] {
  return Array.isArray(checks) ? checks.filter(isObject).map(({ id }) => id) : [];
}

/** The preview tool requires the size of its screen and automatic truncation. */
function findScreenToolFault(body: Item): { message: string; param: string } | undefined {
  const tools: readonly unknown[] = Array.isArray(body['tools']) ? body['tools'] : [];
  for (const [index, tool] of tools.entries()) {
    if (!isObject(tool)) continue;
    if ('handler' in tool) {
      const param = `tools[${index}].handler`;
      return { message: `Unknown parameter: '${param}'.`, param };
    }
    if (tool['type'] !== 'computer_use_preview') continue;
    const missing = ['display_width', 'display_height', 'environment'].find(
      (name) => !(name in tool),
    );
    if (missing !== undefined) {
      const param = `tools[${index}].${missing}`;
      return { message: `Missing required parameter: '${param}'.`, param };
    }
    if (body['truncation'] !== 'auto') {
      return { message: "This model requires truncation to be 'auto'.", param: 'truncation' };
    }
  }
  return undefined;
}

type Item = Record<string, unknown>;

interface Refusal {
  readonly message: string;
  readonly param?: string;
  readonly code?: string;
}

const OUTPUTS: readonly unknown[] = ['function_call_output', 'computer_call_output'];

/**
 * Returns the refusal of a request that the Responses API would refuse: unpaired calls and outputs,
 * reasoning that is foreign or has lost its following item, tools in the form of the other API.
 */
export function refuseResponses(body: Item): Step | undefined {
  const items = listItems(body);
  const refusal =
    findBadBody(body) ??
    findBadTool(body['tools']) ??
    findScreenToolFault(body) ??
    findBadScreen(items) ??
    findUnpaired(items) ??
    findBadReasoning(items);
  if (refusal === undefined) return undefined;
  return replyError(400, { type: 'invalid_request_error', code: null, param: null, ...refusal })
    .wire;
}

function findBadBody(body: Item): Refusal | undefined {
  if (body['input'] === undefined) {
    return { message: "Missing required parameter: 'input'.", param: 'input' };
  }
  if (body['messages'] !== undefined) {
    return { message: "Unsupported parameter: 'messages'.", param: 'messages' };
  }
  const { previous_response_id: id } = body;
  if (id === undefined || id === null) return undefined;
  const message = `Previous response with id '${display(id)}' not found.`;
  return { message, param: 'previous_response_id', code: 'previous_response_not_found' };
}

function display(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function findBadTool(tools: unknown): Refusal | undefined {
  const list: readonly unknown[] = Array.isArray(tools) ? tools : [];
  const index = list.findIndex(
    (tool) => isObject(tool) && tool['type'] === 'function' && typeof tool['name'] !== 'string',
  );
  if (index < 0) return undefined;
  const param = `tools[${index}].name`;
  return { message: `Missing required parameter: '${param}'.`, param };
}

function findBadScreen(items: readonly Item[]): Refusal | undefined {
  const message = findScreenFault(items);
  return message === undefined ? undefined : { message, param: 'input' };
}

function findUnpaired(items: readonly Item[]): Refusal | undefined {
  const idsOf = (type: string): readonly unknown[] =>
    items.filter((item) => item['type'] === type).map((item) => item['call_id']);
  const [calls, outputs] = [idsOf('function_call'), idsOf('function_call_output')];
  const open = calls.find((id) => !outputs.includes(id));
  if (open !== undefined) {
    return { message: `No tool output found for function call ${display(open)}.`, param: 'input' };
  }
  const orphan = outputs.find((id) => !calls.includes(id));
  if (orphan === undefined) return undefined;
  const message = `No tool call found for function call output with call_id ${display(orphan)}.`;
  return { message, param: 'input' };
}

function findBadReasoning(items: readonly Item[]): Refusal | undefined {
  for (const [index, item] of items.entries()) {
    if (item['type'] !== 'reasoning') continue;
    const name = `'${display(item['id'])}'`;
    const next = items[index + 1];
    if (next === undefined || OUTPUTS.includes(next['type']) || next['role'] === 'user') {
      const message = `Item ${name} of type 'reasoning' was provided without its required following item.`;
      return { message, param: 'input' };
    }
    const { encrypted_content: encrypted } = item;
    if (typeof encrypted !== 'string') {
      const message = `Item with id ${name} not found. Items are not persisted when \`store\` is set to false.`;
      return { message, param: 'input' };
    }
    if (decrypt(encrypted) === undefined) {
      const message = `The encrypted content for item ${display(item['id'])} could not be verified.`;
      return { message, code: 'invalid_encrypted_content' };
    }
  }
  return undefined;
}
