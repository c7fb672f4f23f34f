import type { Context } from '@temporalio/activity';
import type { DecideArtifacts, DecideFunction } from '../../agents/decide-function.js';
import { isObject } from '../../core/json.js';
import { isModelError, ModelError } from '../../models/model-error.js';
import type { Model, ModelReply } from '../../models/model.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { runAttributed } from '../../tools/stray-errors.js';
import type { ActivityDependencies } from '../dependencies.js';
import { queryWorkflow } from '../query-workflow.js';
import { findStorageFault } from '../storage-faults.js';
import { openArtifacts } from '../tool/tool-context.js';
import { createLog, toRunIds } from '../tool/user-function.js';
import { openDecideCalls, type DecideCallOptions } from './decide-calls.js';

/** Options for calling a decision function. */
export interface Deciding extends Omit<DecideCallOptions, 'blobs' | 'context'> {
  readonly decide: DecideFunction;
  readonly closing: boolean;
  readonly userContext: Parameters<DecideFunction>[0]['context'];
}

/**
 * Wraps an agent's decision function as a model. Its replies have no usage: that of its own model
 * calls is in the attempt's memory, regardless of how the decision ends.
 */
export function toDecidingModel(
  deps: ActivityDependencies,
  context: Context,
  deciding: Deciding,
): Model {
  const { decide, closing, userContext } = deciding;
  const open = openDecideCalls({ ...deciding, blobs: deps.blobs, context });
  return {
    async call(request, { signal }) {
      const calls = open(request, signal);
      const { instructions, messages, tools } = request;
      const input = {
        instructions,
        // The worker's cache and other runs share these objects, so the function gets copies.
        ...structuredClone({ messages, tools, context: userContext }),
        closing,
        signal,
        model: calls.model,
        log: createLog(context),
        artifacts: decideArtifacts(deps, context),
      };
      try {
        const decision = toReply(await runAttributed('the decide function', () => decide(input)));
        calls.cutOff();
        return decision;
      } catch (error) {
        await calls.idle();
        if (isModelError(error) || findStorageFault(error) !== null) throw error;
        signal.throwIfAborted();
        const message = `the agent's decide function threw: ${normalizeError(error).message}`;
        throw new ModelError(message, { kind: 'request', type: 'decide' });
      }
    },
  };
}

/**
 * Returns the artifacts for a decision function. They are queried from the run on demand, so no
 * call's input contains them.
 */
function decideArtifacts(deps: ActivityDependencies, context: Context): DecideArtifacts {
  const find = async () => await queryWorkflow(context, deps).artifacts();
  const get = async (name: string, schema?: Parameters<DecideArtifacts['get']>[1]) => {
    const named = await find();
    const { id: run } = toRunIds(context.info);
    const opened = await openArtifacts(named.length === 0 ? {} : { artifacts: { named } }, {
      ...deps,
      run,
    });
    return await (schema === undefined ? opened.get(name) : opened.get(name, schema));
  };
  return {
    async list() {
      return (await find()).map(({ name, kind, summary, tool }) => {
        return { name, kind, ...(summary !== undefined && { summary }), tool };
      });
    },
    get,
  };
}

function toReply(decision: unknown): ModelReply {
  if (isObject(decision) && typeof decision['answer'] === 'string') {
    return { text: decision['answer'], calls: [], finish: 'stop' };
  }
  const requested = isObject(decision) ? decision['calls'] : undefined;
  if (!Array.isArray(requested) || requested.length === 0 || !requested.every(isCall)) {
    throw new ModelError(
      'the agent\'s decide function must give { answer: "text" } or { calls: [{ name, arguments }] }',
      { kind: 'request', type: 'decide' },
    );
  }
  const calls = requested.map(({ name, arguments: args }) => ({
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
  }));
  return { text: '', calls, finish: 'calls' };
}

function isCall(call: unknown): call is { name: string; arguments?: unknown } {
  return isObject(call) && typeof call['name'] === 'string';
}
