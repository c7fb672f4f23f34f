import type { Context } from '@temporalio/activity';
import type { DecideArtifacts, DecideFunction, DecideModel } from '../../agents/decide-function.js';
import { sha256Hex } from '../../core/digest.js';
import { canonicalJson, isObject, type JsonObject } from '../../core/json.js';
import type { ReplyUsage } from '../../core/reply.js';
import { addTokens } from '../../core/spend.js';
import { show } from '../../core/text/format-value.js';
import { isModelError, ModelError } from '../../models/model-error.js';
import type { Model, ModelReply, ModelRequest } from '../../models/model.js';
import { estimateUsage } from '../../models/usage-estimate.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { runAttributed } from '../../tools/stray-errors.js';
import type { ActivityDependencies } from '../dependencies.js';
import { queryWorkflow } from '../query-workflow.js';
import { findStorageFault } from '../storage-faults.js';
import { openArtifacts } from '../tool/tool-context.js';
import { createLog, toRunIds } from '../tool/user-function.js';
import { handOver, readPaidReply, toPaidReply, type AttemptMemory } from './attempt-memory.js';

/** How often a decision may call the model: the replies are remembered for another attempt. */
const MAX_CALLS = 32;
/** A larger reply goes to the blob store, because up to `MAX_CALLS` of them are remembered. */
const INLINE_BYTES = 2 * 1024;

/** What a decision function is called with, and where its calls of the model are remembered. */
export interface Deciding {
  readonly decide: DecideFunction;
  /** Calls the agent's model once; its replies have no secrets. */
  readonly call: (request: ModelRequest, signal: AbortSignal) => Promise<ModelReply>;
  readonly memory: AttemptMemory;
  readonly closing: boolean;
  readonly userContext: Parameters<DecideFunction>[0]['context'];
}

/** Wraps an agent's decision function as a model that uses what its own calls of the model use. */
export function toDecidingModel(
  deps: ActivityDependencies,
  context: Context,
  deciding: Deciding,
): Model {
  const { decide, memory, closing, userContext } = deciding;
  return {
    async call(request, { signal }) {
      const { instructions, messages, tools } = request;
      const input = {
        instructions,
        messages,
        tools,
        closing,
        signal,
        context: userContext,
        model: decideModel(deps, context, { deciding, request, signal }),
        log: createLog(context),
        artifacts: decideArtifacts(deps, context),
      };
      try {
        const decision = await runAttributed('the decide function', () => decide(input));
        return { ...toReply(decision), usage: usedBy(memory) };
      } catch (error) {
        if (isModelError(error) || findStorageFault(error) !== null) throw error;
        signal.throwIfAborted();
        const message = `the agent's decide function threw: ${normalizeError(error).message}`;
        throw new ModelError(message, { kind: 'request', type: 'decide' });
      }
    },
  };
}

const NO_USAGE: ReplyUsage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

/** Returns what the model calls of a decision have used, those of earlier attempts included. */
export function usedBy({ asked }: AttemptMemory): ReplyUsage {
  return asked.reduce((sum, { usage }) => addTokens(sum, usage), NO_USAGE);
}

function decideModel(
  { blobs }: Pick<ActivityDependencies, 'blobs'>,
  context: Context,
  on: { readonly deciding: Deciding; readonly request: ModelRequest; readonly signal: AbortSignal },
): DecideModel {
  const { call, memory } = on.deciding;
  // Two equal requests of a decision are two calls.
  const unused = memory.asked.filter(({ reply, blob }) => (reply ?? blob) !== undefined);
  let count = 0;
  return {
    name: on.request.model,
    async call(given = {}) {
      const request = merged(on.request, given);
      count += 1;
      if (count > MAX_CALLS) {
        throw new Error(`model.call: expected at most ${MAX_CALLS} calls in a decision`);
      }
      const digest = requestDigest(request);
      const known = unused.findIndex((one) => one.digest === digest);
      const [found] = known < 0 ? [] : unused.splice(known, 1);
      const reply =
        found === undefined ? await call(request, on.signal) : await readPaidReply(found, blobs);
      if (found === undefined) {
        const usage =
          reply.usage ?? ({ ...estimateUsage(request, reply), estimated: true } as const);
        const paid = await toPaidReply(reply, { checks: 0, blobs, inlineBytes: INLINE_BYTES });
        memory.asked.push({ digest, usage, checks: 0, ...paid });
        await handOver(context, memory);
      }
      const { text, calls, finish, usage } = reply;
      return { text, calls, finish, ...(usage && { usage }) };
    },
  };
}

const REQUEST_FIELDS = [
  'instructions',
  'messages',
  'tools',
  'toolChoice',
  'settings',
  'responseFormat',
] as const;

/** Returns the step's own request with the fields that the function gives. Throws an `Error` for others. */
function merged(own: ModelRequest, given: unknown): ModelRequest {
  if (!isObject(given)) {
    throw new Error(`model.call: expected an object of a request's fields, got ${show(given)}`);
  }
  const fields: readonly string[] = REQUEST_FIELDS;
  const unknown = Object.keys(given).find((key) => !fields.includes(key));
  if (unknown !== undefined) {
    throw new Error(`model.call: ${unknown}: expected one of ${REQUEST_FIELDS.join(', ')}`);
  }
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  const request: ModelRequest = { ...own, ...Object.fromEntries(set) };
  const { maxOutputTokens: most } = own.settings;
  const { maxOutputTokens = most } = request.settings;
  if (most === undefined || maxOutputTokens === undefined) return request;
  const least = Math.min(most, maxOutputTokens);
  return { ...request, settings: { ...request.settings, maxOutputTokens: least } };
}

function requestDigest(request: ModelRequest): string {
  const named = Object.fromEntries(REQUEST_FIELDS.map((name) => [name, request[name] ?? null]));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- requests are sent as JSON
  return sha256Hex(canonicalJson(JSON.parse(JSON.stringify(named)) as JsonObject));
}

/** The artifacts are asked of the run when the function needs them, so that no call's input has them. */
function decideArtifacts(deps: ActivityDependencies, context: Context): DecideArtifacts {
  const find = async () => await queryWorkflow(context, deps).artifacts();
  const get = async (name: string, schema?: Parameters<DecideArtifacts['get']>[1]) => {
    const named = await find();
    const { id: run } = toRunIds(context.info);
    const opened = await openArtifacts({ artifacts: { named } }, { ...deps, run });
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
  const asked = isObject(decision) ? decision['calls'] : undefined;
  if (!Array.isArray(asked) || asked.length === 0 || !asked.every(isCall)) {
    throw new ModelError(
      'the agent\'s decide function must give { answer: "text" } or { calls: [{ name, arguments }] }',
      { kind: 'request', type: 'decide' },
    );
  }
  const calls = asked.map(({ name, arguments: given }) => ({
    name,
    arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}),
  }));
  return { text: '', calls, finish: 'calls' };
}

function isCall(call: unknown): call is { name: string; arguments?: unknown } {
  return isObject(call) && typeof call['name'] === 'string';
}
