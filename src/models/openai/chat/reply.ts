import { isObject } from '../../../core/json.js';
import type { Finish, ModelReply } from '../../model.js';
import { logprobsOf } from '../logprobs.js';
import { ModelError, type ModelErrorKind } from '../../model-error.js';
import { keptEchoes } from '../provider-fields.js';
import { detailsFrom, requestIdOf, type CallPlace } from '../errors.js';
import { usageOf } from '../usage.js';
import { sample } from '../../sample.js';
import { makerOf } from '../replayed-items.js';

/** Where a reply came from: its headers, and the call for messages. */
export interface ReplySource {
  readonly headers: Headers;
  readonly place: CallPlace;
  /** The tool that the model's actions on a screen go to. */
  readonly computer?: string;
}

/** An answer that cannot be used. The sample is of the provider's text, at most 300 characters. */
export function unusable(
  source: ReplySource,
  problem: {
    readonly kind?: ModelErrorKind;
    readonly type: string;
    readonly what: string;
    readonly text: string;
  },
): ModelError {
  const { kind = 'retry', type, what, text } = problem;
  const said = sample(text);
  return new ModelError(
    `${source.place.baseUrl} ${what}${said === '' ? '' : `: ${said}`}`,
    detailsFrom({ kind, type }, source.headers),
  );
}

/** What is said in content that is a text, or a list of parts; parts that are no text are passed over. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part: unknown) => {
      if (typeof part === 'string') return part;
      return isObject(part) && typeof part['text'] === 'string' ? part['text'] : '';
    })
    .join('');
}

/** What a model nests deeper than can be written down is no JSON to anybody; the reply is paid for all the same. */
const TOO_DEEP = '[nested too deeply]';

/** The arguments of a call as JSON text; servers send them as a text, as an object, or not at all. */
export function argumentsOf(value: unknown): string {
  if (value === undefined || value === null || value === '') return '{}';
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return TOO_DEEP;
    throw error;
  }
}

function callsOf(message: Record<string, unknown>, source: ReplySource): ModelReply['calls'] {
  const calls = message['tool_calls'];
  if (!Array.isArray(calls)) return [];
  return calls.map((call: unknown) => {
    const asked = isObject(call) ? call['function'] : undefined;
    if (!isObject(asked) || typeof asked['name'] !== 'string' || asked['name'] === '') {
      throw unusable(source, {
        type: 'bad_call',
        what: 'asked for a call without a name',
        text: JSON.stringify(call),
      });
    }
    return { name: asked['name'], arguments: argumentsOf(asked['arguments']) };
  });
}

/** Known words for the reason; what a server says beyond them is read from what it sent. */
function finishOf(reason: unknown, hasCalls: boolean): Finish {
  if (reason === 'content_filter') return 'filtered';
  if (reason === 'length') return 'length';
  return hasCalls ? 'calls' : 'stop';
}

function messageOf(
  value: unknown,
  source: ReplySource,
): { readonly message: Record<string, unknown>; readonly choice: Record<string, unknown> } {
  const choices = isObject(value) ? value['choices'] : undefined;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (isObject(choice) && isObject(choice['message'])) {
    return { message: choice['message'], choice };
  }
  throw unusable(source, {
    type: choice === undefined ? 'empty_choices' : 'no_message',
    what: 'answered without a message',
    text: JSON.stringify(value) ?? 'undefined',
  });
}

/**
 * A completion as the model's reply; `value` may be anything that JSON can hold. Rejects nothing
 * but by `ModelError`: an answer without a message is `retry`, one that says nothing is `empty`.
 *
 * Calls of a reply that was filtered or refused are dropped: nobody shall execute them.
 */
export function parseCompletion(value: unknown, source: ReplySource): ModelReply {
  const { message, choice } = messageOf(value, source);
  const reason = choice['finish_reason'];
  const logprobs = logprobsOf(choice['logprobs']);
  const usage = usageOf(isObject(value) ? value['usage'] : undefined);
  const requestId = requestIdOf(source.headers);
  const rest = {
    ...(usage !== undefined && { usage }),
    ...(requestId !== undefined && { requestId }),
    ...(logprobs !== undefined && { logprobs }),
  };
  const refusal = message['refusal'];
  if (typeof refusal === 'string' && refusal !== '') {
    return { text: refusal, calls: [], finish: 'refused', ...rest };
  }
  if (reason === 'error') {
    throw unusable(source, {
      type: 'finish_error',
      what: 'broke off its answer',
      text: JSON.stringify(message),
    });
  }
  const text = textOf(message['content']);
  const calls = reason === 'content_filter' ? [] : callsOf(message, source);
  const finish = finishOf(reason, calls.length > 0);
  if (finish === 'stop' && text === '') {
    throw unusable(source, {
      kind: 'empty',
      type: 'empty_reply',
      what: 'answered with neither text nor calls',
      text: JSON.stringify(message),
    });
  }
  const provider =
    calls.length === 0 ? undefined : keptEchoes(message, makerOf(source.place, 'chat'));
  return { text, calls, finish, ...(provider && { provider }), ...rest };
}
