import type { JsonObject } from '../core/json.js';
import { createEmitter, emitReply } from './deltas.js';
import type { Model, ModelReply, ModelRequest } from './model.js';
import { ModelError } from './model-error.js';

/** One step of a script: a reply, an error to reject with, or a function of the request. */
export type ScriptStep =
  | ModelReply
  | Error
  | ((request: ModelRequest) => ModelReply | Promise<ModelReply>);

/** A `Model` that replies from a list and records its requests. */
export interface ScriptedModel extends Model {
  /**
   * Copies of the requests in the order of the calls, so later changes to a request do not show.
   */
  readonly requests: readonly ModelRequest[];
  /** Throws an `Error` if unused steps remain. */
  assertConsumed(): void;
}

const USAGE = { inputTokens: 10, outputTokens: 5, cachedTokens: 0 };

/**
 * Creates a reply of text, which ends a turn.
 *
 * @example
 * ```ts
 * import { replyText, scriptedModel } from 'perdure/testing';
 *
 * export const model = scriptedModel([replyText('Hello.'), new Error('the connection was lost')]);
 * ```
 */
export function replyText(text: string): ModelReply {
  return { text, calls: [], finish: 'stop', usage: USAGE };
}

/**
 * Creates a reply that requests calls, in this order.
 *
 * @example
 * ```ts
 * import { replyCalls, scriptedModel } from 'perdure/testing';
 *
 * const add = { name: 'add', arguments: { a: 1, b: 2 } };
 * const today = { name: 'today', arguments: {} };
 *
 * export const model = scriptedModel([replyCalls([add, today])]);
 * ```
 */
export function replyCalls(
  calls: readonly { readonly name: string; readonly arguments: JsonObject }[],
): ModelReply {
  return {
    text: '',
    calls: calls.map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments) })),
    finish: 'calls',
    usage: USAGE,
  };
}

/**
 * Creates a reply that requests one call.
 *
 * @example
 * ```ts
 * import { replyCall, replyText, scriptedModel } from 'perdure/testing';
 *
 * export const model = scriptedModel([
 *   replyCall('add', { a: 17, b: 25 }),
 *   ({ messages }) => replyText(`It is ${messages.at(-1)?.text ?? ''}.`),
 * ]);
 * ```
 */
export function replyCall(name: string, args: JsonObject = {}): ModelReply {
  return replyCalls([{ name, arguments: args }]);
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
      const reply = typeof step === 'function' ? await step(request) : step;
      signal.throwIfAborted();
      emitReply(reply, createEmitter(onDelta));
      return reply;
    },
    assertConsumed() {
      if (requests.length >= script.length) return;
      throw new Error(
        `The scripted model was called ${requests.length} times, but its script has ${script.length} steps.`,
      );
    },
  };
}

function exhausted(count: number, steps: number): ModelError {
  return new ModelError(
    `The scripted model was called ${count} times, but its script has ${steps} steps. Add a step, or find out why it was called again.`,
    { kind: 'request', type: 'script_exhausted' },
  );
}
