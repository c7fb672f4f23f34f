import type { Context, Info } from '@temporalio/activity';
import type { DecideArtifacts, DecideFunction } from '../../agents/agent.js';
import type { CallModelInput } from '../../core/run/contract.js';
import { isObject } from '../../core/text/json.js';
import { formatDuration } from '../../core/text/text.js';
import { type LiveHub, processHub } from '../../live/hub.js';
import type { ResolvedModel } from '../../models/model-catalog.js';
import {
  MAX_CALL_MS,
  type Model,
  type ModelContext,
  ModelError,
  type ModelReply,
  type ModelRequest,
  isModelError,
  type ModelDelta,
} from '../../models/model.js';
import {
  redact,
  redactJson,
  redactJsonText,
  redactMessage,
  type StreamRedactor,
  createStreamRedactor,
} from '../../secrets/redact.js';
import { runAttributed } from '../../tools/errors.js';
import { normalizeError } from '../../tools/result/plain.js';
import type { ActivityDependencies } from '../activity-context.js';
import { THIS_WORKER, createLog, runBoundedOrThrow, toRunIds } from '../attempt.js';
import { FUNCTION, type TracedReply, observeModelCall } from '../observe.js';
import { type Prompt, queryWorkflow } from '../prompt.js';
import { findStorageFault } from '../storage-faults.js';
import { openArtifacts } from '../tool/tool-result.js';
import type { LiveAttempt } from '../../live/attempts.js';
import { callForClass } from './answer-formats.js';
import type { AttemptMemory } from './attempt-memory.js';
import { checkedModel } from './checked-reply.js';
import { type DecideCallOptions, openDecideCalls } from './decide-calls.js';
import { modelAt } from './fallback.js';

/** Options for calling a decision function. */
interface Deciding extends Omit<DecideCallOptions, 'blobs' | 'context'> {
  readonly decide: DecideFunction;
  readonly closing: boolean;
  readonly userContext: Parameters<DecideFunction>[0]['context'];
}

/**
 * Wraps an agent's decision function as a model. Its replies have no usage: that of its own model
 * calls is in the attempt's memory, regardless of how the decision ends.
 */
function toDecidingModel(deps: ActivityDependencies, context: Context, deciding: Deciding): Model {
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
        throw new ModelError(message, { kind: 'request', type: 'decide', cause: error });
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

interface ProviderCall {
  readonly prompt: Pick<Prompt, 'pinned' | 'userContext'>;
  readonly input: CallModelInput;
  readonly request: ModelRequest;
  readonly memory: AttemptMemory;
}

/**
 * Calls the model, or the agent's decide function, and returns the reply without secrets. Throws a
 * `ModelError`, or any other error that the model threw. The call ends with the activity's
 * cancellation, even if the model ignores its signal.
 */
export async function callProvider(
  deps: ActivityDependencies,
  context: Context,
  providerCall: ProviderCall,
): Promise<TracedReply> {
  const { prompt, input, request } = providerCall;
  const { definition } = prompt.pinned;
  const chosen = chooseModel(deps, context, providerCall);
  const { name } = chosen;
  const model = checkedModel(chosen.model);
  const { output, decide } = definition;
  const named = { ...request, model: name };
  const isStep = input.compact === undefined;
  // Summaries and JSON decisions are not streamed, because they are not meant for readers.
  const live = isStep && decide !== 'schema' ? deps.live : undefined;
  const call = (signal: AbortSignal): Promise<ModelReply> =>
    isStep && output?.type === 'classes'
      ? callForClass(model, named, { signal, output })
      : withStream(live, { info: context.info, input }, (stream) =>
          model.call(named, { signal, ...stream }),
        );
  const { captureContent: content = false } = deps;
  const about = { definition, model: chosen, input, request: named, content };
  return await observeModelCall(context, about, async () =>
    redactReply(
      await runBoundedOrThrow(call, {
        name: `model "${name}"`,
        // No adapter waits longer, so this only ends a model that never replies.
        timeoutMs: MAX_CALL_MS,
        cancelled: context.cancellationSignal,
        timeoutError: () =>
          new ModelError(`no reply within ${formatDuration(MAX_CALL_MS, { as: 'exact' })}`, {
            kind: 'retry',
            type: 'timeout',
          }),
      }),
    ),
  );
}

/**
 * Returns the agent's model, or its decide function as a model. A summary always needs the model.
 */
function chooseModel(
  deps: ActivityDependencies,
  context: Context,
  { prompt: { pinned, userContext }, input, memory }: ProviderCall,
): Pick<ResolvedModel, 'model' | 'name' | 'provider' | 'price'> {
  const { definition, agent } = pinned;
  const ownModel = modelAt(definition, memory.turn);
  if (definition.decide !== 'function' || input.compact !== undefined) {
    return deps.models.resolve(ownModel);
  }
  if (typeof agent?.decide !== 'function') {
    throw new ModelError(
      `agent "${definition.name}" has no decide function on ${THIS_WORKER}; deploy it again`,
      { kind: 'model', type: 'decide_missing' },
    );
  }
  const { decide } = agent;
  const own = deps.models.resolve(ownModel);
  const call = async (request: ModelRequest, signal: AbortSignal): Promise<ModelReply> => {
    const about = { definition, model: own, input, request, content: deps.captureContent === true };
    // The author's code gets the model's original reply.
    const { span: _, ...reply } = await observeModelCall(context, about, async () =>
      redactReply(await checkedModel(own.model).call(request, { signal })),
    );
    return reply;
  };
  const model = toDecidingModel(deps, context, {
    decide,
    call,
    memory,
    words: { name: 'model.call', what: 'decision' },
    priceOf: () => own.price,
    left: async () => input.left,
    hasReserved: true,
    closing: input.closing === true,
    userContext,
  });
  return { model, name: own.name, provider: FUNCTION, price: null };
}

/** Makes a model call whose deltas are streamed, if anything can read them. */
async function withStream(
  live: LiveHub | undefined,
  { info, input: { turn, step } }: { readonly info: Info; readonly input: CallModelInput },
  call: (stream: Pick<ModelContext, 'onDelta'>) => Promise<ModelReply>,
): Promise<ModelReply> {
  const stream = openLiveReply(live, info, { turn, step });
  if (stream === null) return await call({});
  try {
    return await call({ onDelta: stream.push });
  } finally {
    stream.end();
  }
}

/**
 * Returns a reply without the secrets that this process knows. It is redacted before anything is
 * digested or recorded, so digests, prompts, and executed arguments have the same text.
 */
export function redactReply(reply: ModelReply): ModelReply {
  const { requestId, provider } = reply;
  return {
    ...reply,
    text: redact(reply.text),
    calls: reply.calls.map((call) => ({
      ...redactJson(call),
      name: redact(call.name),
      arguments: redactJsonText(call.arguments),
    })),
    ...(provider !== undefined && { provider: redactJson(provider) }),
    ...(requestId !== undefined && { requestId: redactMessage(requestId) }),
  };
}

/** Removes secrets from the deltas of one reply on their way to readers. */
interface DeltaRedactor {
  push(delta: ModelDelta): void;
  /** Emits the text that was held back because it could have become a secret. */
  end(): void;
}

/**
 * A shorter remainder is emitted before another part of the reply begins, so the parts stay in
 * order.
 */
const MAX_HELD_CHARACTERS = 4;

interface Part {
  readonly redactor: StreamRedactor;
  readonly emit: (text: string) => void;
}

/**
 * Creates the redactor of one reply, which calls `emit` with deltas without secrets. A secret may
 * span several deltas of the same part: the text, the reasoning, or the arguments of one call.
 */
function createDeltaRedactor(emit: (delta: ModelDelta) => void): DeltaRedactor {
  const parts = new Map<string, Part>();
  let current: Part | undefined;

  const findPart = (delta: ModelDelta): Part => {
    const key = delta.kind === 'call' ? `call ${delta.index}` : delta.kind;
    const known = parts.get(key);
    if (known !== undefined) return known;
    const part: Part = {
      redactor: createStreamRedactor(),
      emit:
        delta.kind === 'call'
          ? (text) => emit({ kind: 'call', index: delta.index, text })
          : (text) => emit({ kind: delta.kind, text }),
    };
    parts.set(key, part);
    return part;
  };
  const flush = (part: Part): void => {
    const rest = part.redactor.end();
    if (rest !== '') part.emit(rest);
  };

  return {
    push(delta) {
      const part = findPart(delta);
      if (
        current !== undefined &&
        current !== part &&
        current.redactor.held < MAX_HELD_CHARACTERS
      ) {
        flush(current);
      }
      current = part;
      const text = part.redactor.push(delta.text);
      if (delta.kind === 'call' && delta.name !== undefined) {
        emit({ ...delta, name: redact(delta.name), text });
      } else if (text !== '') part.emit(text);
    },
    end() {
      for (const part of parts.values()) flush(part);
    },
  };
}

/** A reply in progress, on its way to readers. */
export interface LiveReply {
  /** Appends a delta, without secrets. */
  readonly push: (delta: ModelDelta) => void;
  /** Passes on what was held back because it could have become a secret. */
  flush(): void;
  /** Ends the reply. `isVoid`: it does not count, although its attempt goes on. */
  end(how?: { readonly isVoid: boolean }): void;
}

/**
 * Opens a reply in the worker's live hub, and for the clients of this process that read the run.
 * Returns null if there is neither, so nothing can read its deltas.
 */
export function openLiveReply(
  live: LiveHub | undefined,
  { activityId, attempt, workflowExecution }: Info,
  place: Pick<LiveAttempt, 'turn' | 'step' | 'node'>,
): LiveReply | null {
  if (workflowExecution === undefined) return null;
  const { workflowId, runId } = workflowExecution;
  const own = processHub.isWatched(workflowId) ? [processHub] : [];
  const hubs = live === undefined ? own : [live, ...own];
  if (hubs.length === 0) return null;
  const of = { segment: runId, activity: activityId, attempt, ...place };
  const writers = hubs.map((hub) => hub.begin(workflowId, of));
  const redactor = createDeltaRedactor((delta) => {
    for (const writer of writers) writer.push(delta);
  });
  return {
    push: (delta) => redactor.push(delta),
    flush: () => redactor.end(),
    end(how) {
      redactor.end();
      for (const writer of writers) writer.end(how);
    },
  };
}
