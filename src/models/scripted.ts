import type { JsonObject } from '../core/json.js';
import { createEmitter, emitReply } from './deltas.js';
import type { Model, ModelReply, ModelRequest } from './model.js';
import { ModelError } from './model-error.js';

export type ScriptedReply = ModelReply;

/** One step of a script: a reply, an error to reject with, or a function of the request. */
export type ScriptStep =
  ScriptedReply | Error | ((request: ModelRequest) => ScriptedReply | Promise<ScriptedReply>);

/** A `Model` that answers from a list and remembers what it was asked. */
export interface ScriptedModel extends Model {
  /** Copies, in the order of the calls: what happens to a request later does not change them. */
  readonly requests: readonly ModelRequest[];
  /** Throws when steps are left over. */
  assertConsumed(): void;
}

const USAGE = { inputTokens: 10, outputTokens: 5, cachedTokens: 0 };

/** A reply that is text, and thus the end of a turn. */
export function replyText(text: string): ScriptedReply {
  return { text, calls: [], finish: 'stop', usage: USAGE };
}

/** A reply that asks for calls, in this order. */
export function replyCalls(
  calls: readonly { readonly name: string; readonly arguments: JsonObject }[],
): ScriptedReply {
  return {
    text: '',
    calls: calls.map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments) })),
    finish: 'calls',
    usage: USAGE,
  };
}

/** A reply that asks for one call. */
export function replyCall(name: string, args: JsonObject = {}): ScriptedReply {
  return replyCalls([{ name, arguments: args }]);
}

function exhausted(count: number, steps: number): ModelError {
  return new ModelError(
    `The scripted model was called ${count} times, but its script has ${steps} steps. Add a step, or find out why it was called again.`,
    { kind: 'request', type: 'script_exhausted' },
  );
}

/** An in-process double of a model: answers with the next step at each call, whoever makes it. */
export function scriptedModel(script: readonly ScriptStep[]): ScriptedModel {
  const requests: ModelRequest[] = [];
  return {
    requests,
    async call(request, { signal, onDelta }) {
      signal.throwIfAborted();
      const step = script[requests.length];
      // A function cannot be copied, and says nothing of what was asked.
      const { files: _files, ...asked } = request;
      requests.push(structuredClone(asked));
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
