import { type JsonObject, isJsonObject, isObject } from '../../../core/text/json.js';
import type { FinishReason, ModelReply, ModelRequest } from '../../model.js';
import {
  type ReplySource,
  type WireApi,
  createNativeTools,
  refuseComputer,
  refuseNativeTools,
} from '../../wire/api.js';
import { readAttachments } from '../../wire/attachment-parts.js';
import { parseLogprobs, parseUsage, toArgumentsText } from '../../wire/content.js';
import {
  emptyReply,
  getRequestId,
  missingMessage,
  replyToError,
  unusableAnswer,
} from '../../wire/errors.js';
import { getMaker, readStoredItems } from '../../wire/opaque-fields.js';
import {
  SCHEMA_FAULT,
  type SentParameter,
  namedParameter,
  settingParameter,
  toolChoice,
} from '../../wire/refusals.js';
import {
  BETWEEN_MESSAGES,
  createComputerCall,
  extractItems,
  joinMessageText,
  listScreenshots,
  toFunctionCall,
} from './computer.js';
import { type ResponsesRequest, createResponsesRequest } from './request.js';
import { assembleResponse } from './stream.js';

/** The statuses of a usable response; some servers omit the status of a complete one. */
const USABLE: readonly unknown[] = ['completed', 'incomplete', undefined, null];

/**
 * Reads a response as the model's reply; `value` may be any JSON. Throws only a `ModelError`, as
 * `parseCompletion` does, and drops the calls of a filtered or refused reply.
 */
export function parseResponse(value: unknown, source: ReplySource): ModelReply {
  const answer = readAnswer(value, source);
  const { output, status } = answer;
  if (status === 'failed') {
    const error = answer.value['error'] ?? { type: 'failed' };
    return replyToError({ headers: source.headers, error }, source.place);
  }
  if (!USABLE.includes(status)) {
    const what = `returned an incomplete answer with status ${JSON.stringify(status)}`;
    throw unusableAnswer(source, { type: 'finish_error', what, text: '' });
  }
  const usage = parseUsage(answer.value['usage']);
  const requestId = getRequestId(source.headers);
  const tokens = listParts(output, 'output_text').flatMap(({ logprobs }): readonly unknown[] =>
    Array.isArray(logprobs) ? logprobs : [],
  );
  const logprobs = parseLogprobs({ content: tokens });
  const optional = {
    ...(usage && { usage }),
    ...(requestId !== undefined && { requestId }),
    ...(logprobs && { logprobs }),
  };
  const refusal = joinRefusals(output);
  if (refusal !== '') return { text: refusal, calls: [], finish: 'refused', ...optional };
  const text = joinMessages(output);
  const isFiltered = toFinish(answer, false) === 'filtered';
  const calls = isFiltered ? [] : parseCalls(output, source);
  const finish = toFinish(answer, calls.length > 0);
  if (finish === 'stop' && text === '') {
    throw emptyReply(source, output);
  }
  const provider = isFiltered ? undefined : extractItems(output, getMaker(source.place));
  return { text, calls, finish, ...(provider && { provider }), ...optional };
}

interface Answer {
  readonly status: unknown;
  readonly output: readonly JsonObject[];
  readonly value: Record<string, unknown>;
}

function readAnswer(value: unknown, source: ReplySource): Answer {
  if (!isObject(value) || !Array.isArray(value['output'])) {
    throw missingMessage(source, value, {
      isPaid: isObject(value) && (value['object'] === 'response' || isObject(value['usage'])),
      type: 'no_output',
    });
  }
  const items = value['output'].filter(isJsonObject);
  const output = source.computer === undefined ? items.map(toFunctionCall) : items;
  return { status: value['status'], output, value };
}

function listParts(
  output: readonly JsonObject[],
  type: string,
): readonly Record<string, unknown>[] {
  return output
    .filter((item) => item['type'] === 'message' && Array.isArray(item['content']))
    .flatMap((item): readonly unknown[] => (Array.isArray(item['content']) ? item['content'] : []))
    .filter(isObject)
    .filter((part) => part['type'] === type);
}

function joinRefusals(output: readonly JsonObject[]): string {
  return listParts(output, 'refusal')
    .map(({ refusal }) => (typeof refusal === 'string' ? refusal : ''))
    .join('');
}

function joinMessages(output: readonly JsonObject[]): string {
  return output
    .filter(({ type }) => type === 'message')
    .map(({ content }) => joinMessageText(content))
    .filter((text) => text !== '')
    .join(BETWEEN_MESSAGES);
}

function parseCalls(output: readonly JsonObject[], source: ReplySource): ModelReply['calls'] {
  return output
    .filter(({ type }) => type === 'function_call' || type === 'computer_call')
    .map((item) => {
      if (item['type'] === 'computer_call') return createComputerCall(item, source.computer ?? '');
      const { name, arguments: args } = item;
      if (typeof name !== 'string' || name === '') {
        const what = 'requested a call without a name';
        throw unusableAnswer(source, {
          kind: 'malformed',
          type: 'bad_call',
          what,
          text: JSON.stringify(item),
        });
      }
      return { name, arguments: toArgumentsText(args) };
    });
}

function toFinish({ status, value }: Answer, hasCalls: boolean): FinishReason {
  if (status === 'incomplete') {
    const details = value['incomplete_details'];
    const reason = isObject(details) ? details['reason'] : undefined;
    // For any other reason, the answer is also incomplete.
    return reason === 'content_filter' ? 'filtered' : 'length';
  }
  return hasCalls ? 'calls' : 'stop';
}

/**
 * Lists the parameters of a Responses request that a server may refuse, in the order of the search.
 */
function listResponsesParameters(
  request: ModelRequest,
  body: ResponsesRequest,
): readonly SentParameter[] {
  const { tool_choice: choice, include, store, stream, top_logprobs: logprobs } = body;
  const settings = Object.keys(request.settings).filter(
    (name) => !['maxOutputTokens', 'nativeTools', 'include'].includes(name),
  );
  const isEncrypted = include?.includes('reasoning.encrypted_content') ?? false;
  const encrypted: SentParameter = {
    ...namedParameter('include', 'include'),
    names: '\\binclude\\b|encrypted content',
  };
  return [
    ...(stream ? [namedParameter('stream', 'stream(?:ing)?')] : []),
    ...(isEncrypted ? [encrypted] : []),
    ...providerItems(request),
    ...responseFormat(body),
    ...(logprobs === undefined ? [] : [namedParameter('logprobs', '(?:top_)?log_?probs')]),
    ...(choice ? [toolChoice(choice)] : []),
    ...(body.tools?.some(({ strict }) => strict !== undefined) ? [STRICT_TOOLS] : []),
    ...(store === false ? [namedParameter('store', 'store')] : []),
    ...settings.map((name): SentParameter => ({ ...settingParameter(name), ...OWN_NAMES[name] })),
  ];
}

const STRICT_TOOLS: SentParameter = {
  parameter: 'tools:strict',
  param: /^tools\b.*\bstrict$/,
  names: '\\bstrict\\b',
};

/** Settings that this API calls by another name. */
const OWN_NAMES: Readonly<Record<string, { param: RegExp; names: string }>> = {
  reasoning_effort: { param: /^reasoning(\.effort)?$/, names: 'reasoning[._]effort' },
  verbosity: { param: /^text\.verbosity$/, names: '\\bverbosity\\b' },
};

/**
 * Returns replayed items, which are refused, for example, after the key's organization has changed.
 */
function providerItems({ messages }: ModelRequest): readonly SentParameter[] {
  const hasItems = messages.some((one) => one.role === 'assistant' && one.provider !== undefined);
  if (!hasItems) return [];
  return [
    {
      parameter: 'provider_items',
      param: /^input(\[\d+\]|\.\d+)?/,
      names: 'reasoning items?|encrypted[_ ]content',
      also: /encrypted content.{0,80}(could not be|cannot be|not be) (verified|decrypted|parsed)|item '?rs_\w+'?.{0,60}(not found|was provided without)|invalid_encrypted_content/i,
    },
  ];
}

function responseFormat({ text }: ResponsesRequest): readonly SentParameter[] {
  const format = text?.['format'];
  if (!isObject(format)) return [];
  const type = format['type'] === 'json_object' ? 'json_object' : 'json_schema';
  const param = /^text(\.format)?/;
  const whole: SentParameter = {
    parameter: `response_format:${type}`,
    param,
    names:
      'text\\.format|response[_ ]?formats?|json_schema|json_object|json mode|structured outputs?',
    also: type === 'json_object' ? /contain the word\W{1,3}json/i : SCHEMA_FAULT,
  };
  if (format['strict'] !== true) return [whole];
  const strict: SentParameter = {
    parameter: 'response_format:strict',
    param,
    names: '\\bstrict\\b',
    also: SCHEMA_FAULT,
  };
  return [strict, whole];
}

/** The Responses API without its storage: the run's transcript is sent with each request. */
export const responsesApi: WireApi = {
  path: '/responses',
  propertyNames: undefined,
  async prepare(request, { capabilities, baseUrl, variable }) {
    if (!capabilities.nativeTools) {
      refuseNativeTools(
        request,
        `the model "${request.model}" does not support it; use one that does`,
      );
    }
    refuseComputer(request, capabilities);
    const native = createNativeTools(request, variable);
    const from = getMaker({ baseUrl, model: request.model });
    const [data, stored] = await Promise.all([
      readAttachments(request, capabilities, { also: listScreenshots(request.messages) }),
      readStoredItems(request, from),
    ]);
    return (attempt, { stream }) => {
      const replay = { from, stored };
      const options = { stream, capabilities, data, replay, native };
      const body = createResponsesRequest(attempt, options);
      return { body, sent: () => listResponsesParameters(attempt, body) };
    };
  },
  isAnswer: (value) => isObject(value) && Array.isArray(value['output']),
  isWhole: (event) => isObject(event) && Array.isArray(event['output']),
  isEnd: () => false,
  readUsage: (value) => (isObject(value) ? parseUsage(value['usage']) : undefined),
  read: (value, source) => parseResponse(toResponse(value), source),
  assemble: assembleResponse,
};

/** Returns a response in OpenAI's form: some servers wrap it, or send its text alone. */
function toResponse(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { response, output, output_text: text } = value;
  if (output === undefined && isObject(response)) return toResponse(response);
  const items: readonly unknown[] = Array.isArray(output) ? output : [];
  const has = (type: string): boolean =>
    items.some((item) => isObject(item) && item['type'] === type);
  const isMissing = !has('message') && !has('function_call');
  const alone = typeof output === 'string' ? output : text;
  if (!isMissing || typeof alone !== 'string' || alone === '') return value;
  const message = { type: 'message', content: [{ type: 'output_text', text: alone }] };
  return { ...value, output: [...items, message] };
}
