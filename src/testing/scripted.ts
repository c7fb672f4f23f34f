import { createEmitter, emitReply } from '../models/deltas.js';
import type { Model, ModelReply, ModelRequest } from '../models/model.js';
import { ModelError } from '../models/model-error.js';
import type { ReplyPlace } from '../models/wire/api.js';
import { providerError } from '../models/wire/errors.js';
import { parseJson } from '../core/json.js';
import type { Reply } from './replies.js';

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
        `The scripted model was called ${requests.length} times, but its script has ${script.length} steps.`,
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
    `The scripted model was called ${count} times, but its script has ${steps} steps. Add a step, or find out why it was called again.`,
    { kind: 'request', type: 'script_exhausted' },
  );
}
