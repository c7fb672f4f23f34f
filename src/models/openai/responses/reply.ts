import { isJsonObject, isObject, type JsonObject } from '../../../core/json.js';
import type { FinishReason, ModelReply } from '../../model.js';
import type { ReplySource } from '../../wire/api.js';
import { toArgumentsText } from '../../wire/content.js';
import { getRequestId, missingMessage, replyToError, unusableAnswer } from '../../wire/errors.js';
import { parseLogprobs } from '../logprobs.js';
import { getMaker } from '../../wire/replayed-items.js';
import { parseUsage } from '../../wire/usage.js';
import { createComputerCall, toFunctionCall } from './computer.js';
import { BETWEEN_MESSAGES, extractItems, joinMessageText } from './items.js';

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
    throw unusableAnswer(source, {
      kind: 'empty',
      type: 'empty_reply',
      what: 'answered with neither text nor calls',
      text: JSON.stringify(output),
    });
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
