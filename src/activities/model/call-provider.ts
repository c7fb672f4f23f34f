import { THIS_WORKER } from '../failures.js';
import { formatDuration } from '../../core/text/duration.js';
import type { Context, Info } from '@temporalio/activity';
import type { CallModelInput } from '../../core/contract.js';
import type { LiveHub } from '../../live/hub.js';
import { processHub } from '../../live/process-hub.js';
import type { ResolvedModel } from '../../models/model-catalog.js';
import { ModelError } from '../../models/model-error.js';
import {
  MAX_CALL_MS,
  type ModelContext,
  type ModelReply,
  type ModelRequest,
} from '../../models/model.js';
import { redactJson, redactJsonText } from '../../secrets/redact-json.js';
import { redact, redactMessage } from '../../secrets/redact.js';
import type { ActivityDependencies } from '../dependencies.js';
import { FUNCTION, observeModelCall, type TracedReply } from '../observe.js';
import { runBoundedOrThrow } from '../run-bounded.js';
import type { AttemptMemory } from './attempt-memory.js';
import { callForClass } from './classification.js';
import { toDecidingModel } from './decide-model.js';
import type { Prompt } from './rebuild-prompt.js';
import { createDeltaRedactor } from './redact-deltas.js';

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
  const { model, name } = chosen;
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
  if (definition.decide !== 'function' || input.compact !== undefined) {
    return deps.models.resolve(definition.model);
  }
  if (typeof agent?.decide !== 'function') {
    throw new ModelError(
      `agent "${definition.name}" has no decide function on ${THIS_WORKER}; deploy it again`,
      { kind: 'model', type: 'decide_missing' },
    );
  }
  const { decide } = agent;
  const own = deps.models.resolve(definition.model);
  const call = async (request: ModelRequest, signal: AbortSignal): Promise<ModelReply> => {
    const about = { definition, model: own, input, request, content: deps.captureContent === true };
    // The author's code gets the model's original reply.
    const { span: _, ...reply } = await observeModelCall(context, about, async () =>
      redactReply(await own.model.call(request, { signal })),
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

/**
 * Makes a model call whose deltas go to the worker's live hub, and to the clients of this process
 * that read the run. Without either it just makes the call.
 */
async function withStream(
  live: LiveHub | undefined,
  { info, input }: { readonly info: Info; readonly input: CallModelInput },
  call: (stream: Pick<ModelContext, 'onDelta'>) => Promise<ModelReply>,
): Promise<ModelReply> {
  const { activityId, attempt, workflowExecution } = info;
  if (workflowExecution === undefined) return await call({});
  const { workflowId, runId } = workflowExecution;
  const own = processHub.isWatched(workflowId) ? [processHub] : [];
  const hubs = live === undefined ? own : [live, ...own];
  if (hubs.length === 0) return await call({});
  const { turn, step } = input;
  const place = { segment: runId, activity: activityId, attempt, turn, step };
  const writers = hubs.map((hub) => hub.begin(workflowId, place));
  const redactor = createDeltaRedactor((delta) => {
    for (const writer of writers) writer.push(delta);
  });
  try {
    return await call({ onDelta: (delta) => redactor.push(delta) });
  } finally {
    redactor.end();
    for (const writer of writers) writer.end();
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
