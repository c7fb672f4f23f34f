import type { Context, Info } from '@temporalio/activity';
import type { DecideFunction } from '../../agents/decide-function.js';
import type { CallModelInput } from '../../core/contract.js';
import { isObject, type Json } from '../../core/json.js';
import type { LiveHub } from '../../live/hub.js';
import type { ResolvedModel } from '../../models/model-catalog.js';
import { isModelError, ModelError } from '../../models/model-error.js';
import type { Model, ModelContext, ModelReply, ModelRequest } from '../../models/model.js';
import { redactJson, redactJsonText } from '../../secrets/redact-json.js';
import { redact, redactMessage } from '../../secrets/redact.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { runAttributed } from '../../tools/stray-errors.js';
import type { ActivityDependencies } from '../dependencies.js';
import { observeModelCall } from '../observe.js';
import { runBoundedOrThrow } from '../run-bounded.js';
import { askForClass } from './classification.js';
import type { Prompt } from './rebuild-prompt.js';
import { createDeltaRedactor } from './redact-deltas.js';

/** Longer than every adapter's own time limit: a model that never replies still frees its slot. */
const LONGEST_CALL_MS = 60 * 60_000;

interface Question {
  readonly prompt: Pick<Prompt, 'pinned' | 'userContext'>;
  readonly input: CallModelInput;
  readonly request: ModelRequest;
}

/**
 * Calls the model, or the agent's decide function, and returns the reply without secrets. Throws a
 * `ModelError`, or whatever else the model threw. The call ends with the activity's cancellation, even if
 * the model ignores its signal.
 */
export async function askModel(
  deps: ActivityDependencies,
  context: Context,
  { prompt, input, request }: Question,
): Promise<ModelReply> {
  const { definition } = prompt.pinned;
  const chosen = chooseModel(deps, prompt, input);
  const { model, name } = chosen;
  const { output, decide } = definition;
  const named = { ...request, model: name };
  const isStep = input.compact === undefined;
  // Summaries, and decisions as JSON, are not streamed: they are not meant for readers.
  const live = isStep && decide !== 'schema' ? deps.live : undefined;
  const call = (signal: AbortSignal): Promise<ModelReply> =>
    isStep && output?.type === 'classes'
      ? askForClass(model, named, { signal, output })
      : withStream(live, { info: context.info, input }, (stream) =>
          model.call(named, { signal, ...stream }),
        );
  const { captureContent: content = false } = deps;
  const about = { definition, model: chosen, input, request: named, content };
  return await observeModelCall(context, about, async () =>
    redactReply(
      await runBoundedOrThrow(call, {
        name: `model "${name}"`,
        timeoutMs: LONGEST_CALL_MS,
        cancelled: context.cancellationSignal,
        timeoutError: () =>
          new ModelError(`no reply within ${LONGEST_CALL_MS} ms`, {
            kind: 'retry',
            type: 'timeout',
          }),
      }),
    ),
  );
}

/** Returns the agent's model, or its decide function as a model. A summary always needs the model. */
function chooseModel(
  deps: ActivityDependencies,
  { pinned, userContext: context }: Question['prompt'],
  input: CallModelInput,
): Pick<ResolvedModel, 'model' | 'name' | 'provider' | 'price'> {
  const { definition, agent } = pinned;
  if (definition.decide !== 'function' || input.compact !== undefined) {
    return deps.models.resolve(definition.model);
  }
  if (typeof agent?.decide !== 'function') {
    throw new ModelError(
      `agent "${definition.name}" has no decide function on this worker; deploy it again`,
      { kind: 'model', type: 'decide_missing' },
    );
  }
  const closing = input.closing === true;
  const model = toModel(agent.decide, { closing, context });
  return { model, name: definition.model, provider: 'function', price: null };
}

/** Makes a model call whose deltas go to the live hub; without a hub it just makes the call. */
async function withStream(
  live: LiveHub | undefined,
  { info, input }: { readonly info: Info; readonly input: CallModelInput },
  call: (stream: Pick<ModelContext, 'onDelta'>) => Promise<ModelReply>,
): Promise<ModelReply> {
  const { activityId, attempt, workflowExecution } = info;
  if (live === undefined || workflowExecution === undefined) return await call({});
  const { workflowId, runId } = workflowExecution;
  const { turn, step } = input;
  const place = { segment: runId, activity: activityId, attempt, turn, step };
  const writer = live.begin(workflowId, place);
  const redactor = createDeltaRedactor((delta) => writer.push(delta));
  try {
    return await call({ onDelta: (delta) => redactor.push(delta) });
  } finally {
    redactor.end();
    writer.end();
  }
}

/**
 * Returns a reply without the secrets that this process knows. It is redacted before anything is digested
 * or recorded, so that digests, prompts, and executed arguments have the same text.
 */
function redactReply(reply: ModelReply): ModelReply {
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

/** Wraps an agent's decide function as a model that uses no tokens. */
function toModel(
  decide: DecideFunction,
  { closing, context }: { closing: boolean; context: Json },
): Model {
  return {
    async call({ instructions, messages, tools }, { signal }) {
      try {
        const input = { instructions, messages, tools, closing, context, signal };
        return toReply(await runAttributed('the decide function', () => decide(input)));
      } catch (error) {
        if (isModelError(error)) throw error;
        signal.throwIfAborted();
        const message = `the agent's decide function threw: ${normalizeError(error).message}`;
        throw new ModelError(message, { kind: 'request', type: 'decide' });
      }
    },
  };
}

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

function toReply(decision: unknown): ModelReply {
  if (isObject(decision) && typeof decision['answer'] === 'string') {
    return { text: decision['answer'], calls: [], finish: 'stop', usage: NO_USAGE };
  }
  const asked = isObject(decision) ? decision['calls'] : undefined;
  if (!Array.isArray(asked) || asked.length === 0 || !asked.every(isCall)) {
    throw new ModelError(
      'the agent\'s decide function must give { answer: "text" } or { calls: [{ name, arguments }] }',
      { kind: 'request', type: 'decide' },
    );
  }
  const calls = asked.map((call) => ({
    name: call.name,
    arguments: JSON.stringify(call.arguments ?? {}),
  }));
  return { text: '', calls, finish: 'calls', usage: NO_USAGE };
}

function isCall(call: unknown): call is { name: string; arguments?: unknown } {
  return isObject(call) && typeof call['name'] === 'string';
}
