import { isObject, type JsonObject } from '../../../core/json.js';
import { logprobsOf } from '../logprobs.js';
import type { FinishReason, ModelReply } from '../../model.js';
import { replyToError } from '../answer.js';
import { asFunctionCall, computerCall } from './computer.js';
import { requestIdOf } from '../errors.js';
import { argumentsOf, unusable, type ReplySource } from '../chat/reply.js';
import { BETWEEN_MESSAGES, keptItems, textOfMessage, type Item } from './items.js';
import { responsesUsageOf } from '../usage.js';
import { makerOf } from '../replayed-items.js';

interface Answer {
  readonly status: unknown;
  readonly output: readonly Item[];
  readonly value: Record<string, unknown>;
}

function answerOf(value: unknown, source: ReplySource): Answer {
  if (!isObject(value) || !Array.isArray(value['output'])) {
    throw unusable(source, {
      type: 'no_output',
      what: 'answered without any output',
      text: JSON.stringify(value) ?? 'undefined',
    });
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  const items = value['output'].filter(isObject) as unknown as readonly JsonObject[];
  const output = source.computer === undefined ? items.map(asFunctionCall) : items;
  return { status: value['status'], output, value };
}

function partsOf(output: readonly Item[], type: string): readonly Record<string, unknown>[] {
  return output
    .filter((item) => item['type'] === 'message' && Array.isArray(item['content']))
    .flatMap((item): readonly unknown[] => (Array.isArray(item['content']) ? item['content'] : []))
    .filter(isObject)
    .filter((part) => part['type'] === type);
}

function refusalIn(output: readonly Item[]): string {
  return partsOf(output, 'refusal')
    .map(({ refusal }) => (typeof refusal === 'string' ? refusal : ''))
    .join('');
}

function textIn(output: readonly Item[]): string {
  return output
    .filter(({ type }) => type === 'message')
    .map(({ content }) => textOfMessage(content))
    .filter((text) => text !== '')
    .join(BETWEEN_MESSAGES);
}

function callsIn(output: readonly Item[], source: ReplySource): ModelReply['calls'] {
  return output
    .filter(({ type }) => type === 'function_call' || type === 'computer_call')
    .map((item) => {
      if (item['type'] === 'computer_call') return computerCall(item, source.computer ?? '');
      const { name, arguments: args } = item;
      if (typeof name !== 'string' || name === '') {
        const what = 'asked for a call without a name';
        throw unusable(source, { type: 'bad_call', what, text: JSON.stringify(item) });
      }
      return { name, arguments: argumentsOf(args) };
    });
}

function finishOf({ status, value }: Answer, hasCalls: boolean): FinishReason {
  if (status === 'incomplete') {
    const details = value['incomplete_details'];
    const reason = isObject(details) ? details['reason'] : undefined;
    // Whatever else the reason is: the answer is not whole.
    return reason === 'content_filter' ? 'filtered' : 'length';
  }
  return hasCalls ? 'calls' : 'stop';
}

/** Servers leave the status out of a response that is complete. */
const WHOLE: readonly unknown[] = ['completed', 'incomplete', undefined, null];

/**
 * A response as the model's reply; `value` may be anything that JSON can hold. Rejects nothing but by
 * `ModelError`, as `parseCompletion` does, and drops the calls of a reply that was filtered or refused.
 */
export function parseResponse(value: unknown, source: ReplySource): ModelReply {
  const answer = answerOf(value, source);
  const { output, status } = answer;
  if (status === 'failed') {
    const { error } = answer.value;
    return replyToError(
      { headers: source.headers, error: error ?? { type: 'failed' } },
      source.place,
    );
  }
  if (!WHOLE.includes(status)) {
    const what = `broke off its answer with status ${JSON.stringify(status)}`;
    throw unusable(source, { type: 'finish_error', what, text: '' });
  }
  const usage = responsesUsageOf(answer.value['usage']);
  const requestId = requestIdOf(source.headers);
  const told = partsOf(output, 'output_text').flatMap(({ logprobs }): readonly unknown[] =>
    Array.isArray(logprobs) ? logprobs : [],
  );
  const logprobs = logprobsOf({ content: told });
  const rest = {
    ...(usage && { usage }),
    ...(requestId !== undefined && { requestId }),
    ...(logprobs && { logprobs }),
  };
  const refusal = refusalIn(output);
  if (refusal !== '') return { text: refusal, calls: [], finish: 'refused', ...rest };
  const text = textIn(output);
  const isFiltered = finishOf(answer, false) === 'filtered';
  const calls = isFiltered ? [] : callsIn(output, source);
  const finish = finishOf(answer, calls.length > 0);
  if (finish === 'stop' && text === '') {
    throw unusable(source, {
      kind: 'empty',
      type: 'empty_reply',
      what: 'answered with neither text nor calls',
      text: JSON.stringify(output),
    });
  }
  const provider = isFiltered ? undefined : keptItems(output, makerOf(source.place));
  return { text, calls, finish, ...(provider && { provider }), ...rest };
}
