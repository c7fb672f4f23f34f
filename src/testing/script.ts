import { type JsonObject, isObject, parseJson } from '../core/text/json.js';
import { formatCount } from '../core/text/text.js';
import {
  type Model,
  ModelError,
  type ModelReply,
  type ModelRequest,
  createEmitter,
  emitReply,
} from '../models/model.js';
import type { ReplyPlace } from '../models/wire/api.js';
import { providerError } from '../models/wire/errors.js';
import { type Reply, type SseOptions, type Step, replyError, wireOf } from './replies.js';
import { type StubRequest, getFirstUserText, toText } from './wire-input.js';

/** Answers from the request alone; `undefined` leaves it to the next function. */
export type Answer = (request: StubRequest) => Reply | undefined;

/**
 * The sources of answers, in this order: the queue of a conversation, the common queue, functions.
 */
export interface Script {
  add(steps: readonly Reply[]): void;
  addFor(marker: string, steps: readonly Reply[]): void;
  answer(answer: Answer): void;
  fallback(answer: Answer): void;
  next(request: StubRequest): Step;
  /** Records an error of the test's own functions or steps, which `assertConsumed` throws. */
  fail(error: unknown): void;
  assertConsumed(): void;
}

export function createScript(): Script {
  const common: Reply[] = [];
  const byMarker = new Map<string, Reply[]>();
  const unexpected: string[] = [];
  let answers: readonly Answer[] = [];
  let fallback: Answer | undefined;

  const takeStep = (request: StubRequest): Reply | undefined => {
    const text = getFirstUserText(request);
    const marked = [...byMarker.keys()].find((marker) => text.includes(marker));
    // A conversation with its own queue takes nothing from the common one.
    return marked === undefined ? common.shift() : byMarker.get(marked)?.shift();
  };

  const callAnswers = (request: StubRequest): Reply | undefined => {
    for (const answer of answers) {
      const step = answer(request);
      if (step !== undefined) return step;
    }
    return fallback?.(request);
  };

  return {
    add: (steps) => void common.push(...steps),
    addFor(marker, steps) {
      byMarker.set(marker, [...(byMarker.get(marker) ?? []), ...steps]);
    },
    answer(answer) {
      answers = [...answers, answer];
    },
    fallback(answer) {
      fallback = answer;
    },
    next(request) {
      const step = takeStep(request) ?? callAnswers(request);
      if (step !== undefined) return wireOf(step);
      const message = `The stub has no step for request ${request.number} ("${getFirstUserText(request).slice(0, 60)}", ${formatCount(request.messages.length, 'message')}).`;
      unexpected.push(message);
      // Status 400 is not retried, so the test fails at its cause.
      return replyError(400, { message, type: 'stub_exhausted', code: 'stub_exhausted' }).wire;
    },
    fail(error) {
      unexpected.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    },
    assertConsumed() {
      const left = [
        ...(common.length > 0 ? [`${formatCount(common.length, 'step')} of the common queue`] : []),
        ...[...byMarker]
          .filter(([, steps]) => steps.length > 0)
          .map(([marker, steps]) => `${formatCount(steps.length, 'step')} for "${marker}"`),
      ];
      if (left.length > 0) unexpected.push(`Unused: ${left.join(', ')}.`);
      if (unexpected.length > 0) throw new Error(unexpected.join('\n'));
    },
  };
}

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

/** One step of a script: a reply, an error to reject with, or a function of the request. */
export type ScriptStep =
  | ModelReply
  | Reply
  | Error
  | ((request: ModelRequest) => ModelReply | Reply | Promise<ModelReply | Reply>);

/** A `Model` that replies from a list and records its requests. */
export interface ScriptedModel extends Model {
  /**
   * Copies of the requests in the order of the calls, so later changes to a request do not show.
   */
  readonly requests: readonly ModelRequest[];
  /** Throws an `Error` if unused steps remain. */
  assertConsumed(): void;
}

/**
 * Creates an in-process test double of a model: each call gets the next step of the script. A call
 * after the last step rejects with a `ModelError`.
 *
 * @example
 * ```ts
 * import { defineAgent, defineConfig } from 'perdure';
 * import { replyCall, replyText, scriptedModel } from 'perdure/testing';
 * import { today } from 'perdure/tools';
 *
 * const model = scriptedModel([replyCall('today'), replyText('It is Monday.')]);
 * const clerk = defineAgent({ name: 'clerk', instructions: 'x', model: 'script', tools: [today()] });
 *
 * export const config = defineConfig({ agents: [clerk], models: { script: model } });
 * // … run it, then:
 * model.assertConsumed();
 * ```
 */
export function scriptedModel(script: readonly ScriptStep[]): ScriptedModel {
  const requests: ModelRequest[] = [];
  return {
    requests,
    async call(request, { signal, onDelta }) {
      signal.throwIfAborted();
      const step = script[requests.length];
      // A function cannot be copied.
      const { files: _files, ...recorded } = request;
      requests.push(structuredClone(recorded));
      if (step === undefined) throw exhausted(requests.length, script.length);
      if (step instanceof Error) throw step;
      const reply = replyOf(typeof step === 'function' ? await step(request) : step, request);
      signal.throwIfAborted();
      emitReply(reply, createEmitter(onDelta));
      return reply;
    },
    assertConsumed() {
      if (requests.length >= script.length) return;
      throw new Error(
        `The scripted model was called ${formatCount(requests.length, 'time')}, but its script has ${formatCount(script.length, 'step')}.`,
      );
    },
  };
}

/** Returns the reply of the model. Throws the error of a reply that is none. */
function replyOf(step: ModelReply | Reply, request: ModelRequest): ModelReply {
  if ('calls' in step) return step;
  const { wire } = step;
  if (wire.type === 'reset') {
    throw new ModelError('The scripted model lost its connection.', {
      kind: 'retry',
      type: 'reset',
    });
  }
  if (wire.type === 'raw' && wire.status >= 400) {
    const headers = new Headers(wire.delivery.headers);
    const error = parseJson(wire.body) ?? wire.body;
    throw providerError({ status: wire.status, headers, error }, placeOf(request));
  }
  throw new ModelError(
    'scriptedModel: expected a reply of text or calls, or an error, got bytes that only a stub can send; use startStub',
    { kind: 'request', type: 'script_invalid' },
  );
}

function placeOf({ model }: ModelRequest): ReplyPlace {
  return { baseUrl: 'the script', model, hasKey: true, apiKeyEnv: 'OPENAI_API_KEY', now: Date.now };
}

function exhausted(count: number, steps: number): ModelError {
  return new ModelError(
    `The scripted model was called ${formatCount(count, 'time')}, but its script has ${formatCount(steps, 'step')}. Add a step, or find out why it was called again.`,
    { kind: 'request', type: 'script_exhausted' },
  );
}
