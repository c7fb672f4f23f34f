import { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { AgentDefinition } from '../../core/definition/definition.js';
import type { CallModelInput } from '../../core/run/contract.js';
import type { RecordedReply } from '../../core/transcript/outcome.js';
import { callId, type PromptMessage } from '../../core/transcript/messages.js';
import { isOnlyMarkup } from '../../models/calls-in-markup.js';
import { MALFORMED, ModelError, type ModelRequest } from '../../models/model.js';
import type { TracedReply } from '../observe.js';
import { redactJson } from '../../secrets/redact.js';
import { normalizeError } from '../../tools/result/plain.js';
import {
  assertCurrentAttempt,
  interruptionCause,
  retryFailure,
  startHeartbeat,
} from '../attempt.js';
import type { ActivityDependencies } from '../activity-context.js';
import { createRuleContext } from '../requests/evaluate-call.js';
import {
  findStorageFault,
  reportLoss,
  storageFailure,
  trackStore,
  unstoredFailure,
} from '../storage-faults.js';
import { callProvider } from './call-provider.js';
import {
  paymentOf,
  readMemory,
  readPaidReply,
  toDetails,
  toPaidReply,
  usedBy,
  type AttemptMemory,
  beginCheck,
} from './attempt-memory.js';
import {
  BUDGET,
  attemptReport,
  decideFailure,
  type FailureDecision,
  findRefusedPart,
  modelFailure,
  namingWorker,
  toModelError,
  uselessText,
} from './model-failures.js';
import { BudgetError } from './decide-calls.js';
import {
  type FailedTurn,
  FIRST_TURN,
  asOutage,
  decideTurn,
  firstTurn,
  isOutOfReach,
  modelAt,
  modelsOf,
  rest,
} from './fallback.js';
import { createModelRequest } from './model-request.js';
import { rebuildPrompt, type Prompt } from '../prompt.js';
import { recordReply } from './record-reply.js';

/** The report types of replies without text and calls, and of those that could not be read. */
const USELESS: readonly string[] = [
  'empty_reply',
  'empty_choices',
  'no_message',
  'no_output',
  'bad_call',
  MALFORMED,
];

/** One attempt of a model call. */
interface Attempt {
  readonly deps: ActivityDependencies;
  readonly context: Context;
  readonly input: CallModelInput;
  readonly memory: AttemptMemory;
}

/** A model call that is ready to be made. */
interface PreparedCall {
  readonly prompt: Prompt;
  readonly request: ModelRequest;
}

/**
 * Makes one model call: rebuilds the prompt, creates the request, calls the model, and returns the
 * reply as the history records it. A failed attempt passes its reports and a paid reply to the next
 * attempt by heartbeat.
 */
export async function callModel(
  deps: ActivityDependencies,
  input: CallModelInput,
): Promise<RecordedReply> {
  const context = Context.current();
  const memory = readMemory(context.info, input);
  const attempt = { deps, context, input, memory };
  const stopHeartbeat = startHeartbeat(context, () => toDetails(memory));
  try {
    const prepared = await prepareCall(attempt);
    const reply = await getReply(attempt, prepared);
    // The reply has been paid for: no step from here on may cause another call.
    return await recordCall(attempt, prepared, reply);
  } finally {
    stopHeartbeat();
  }
}

async function prepareCall(attempt: Attempt): Promise<PreparedCall> {
  const { deps, context, input } = attempt;
  try {
    const prompt = await rebuildPrompt(deps, context, input);
    return { prompt, request: createModelRequest(deps, prompt, input) };
  } catch (error) {
    throw reportFailure(attempt, error);
  }
}

/** Calls the model, or reads the reply that an earlier attempt has paid for. */
async function getReply(attempt: Attempt, prepared: PreparedCall): Promise<TracedReply> {
  const { deps, memory } = attempt;
  const { request, prompt } = prepared;
  const { definition } = prompt.pinned;
  memory.turn ??= firstTurn(deps.models, definition, { request, now: Date.now() });
  try {
    const reply =
      memory.paid === null
        ? await callIfCurrent(attempt, prepared)
        : await readPaidReply(memory.paid, deps.blobs);
    refuseMarkup(reply, prepared);
    return withUsage(reply, attempt, prompt);
  } catch (error) {
    throw reportFailure(attempt, error, definition);
  }
}

/**
 * Throws for an answer that is nothing but the markup of calls, where no call can be made: it says
 * nothing to a person.
 */
function refuseMarkup(
  { text, calls, finish }: TracedReply,
  { request: { tools, toolChoice }, prompt: { pinned } }: PreparedCall,
): void {
  const { decide, output } = pinned.definition;
  const mayCall = tools.length > 0 && toolChoice !== 'none';
  if (mayCall || decide !== undefined || output !== undefined || finish !== 'stop') return;
  if (calls.length > 0 || !isOnlyMarkup(text)) return;
  const message = 'The model wrote the markup of a call where it could only answer';
  throw new ModelError(message, { kind: 'empty', type: 'empty_reply' });
}

/**
 * Returns the reply with its usage; that of a decision function is the usage of its model calls.
 */
function withUsage(
  reply: TracedReply,
  { input, memory }: Attempt,
  { pinned: { definition } }: Prompt,
): TracedReply {
  const isDecided = definition.decide === 'function' && input.compact === undefined;
  return isDecided ? { ...reply, usage: usedBy(memory) } : reply;
}

/**
 * Calls the model, unless the server has abandoned this attempt; another attempt then calls it, or
 * has recorded its reply.
 */
async function callIfCurrent(
  { deps, context, input, memory }: Attempt,
  prepared: PreparedCall,
): Promise<TracedReply> {
  const hasChecked = await assertCurrentAttempt(context).catch((error: unknown) => {
    throw retryFailure(normalizeError(error).message);
  });
  const details = toDetails(memory);
  // The heartbeat of the check has replaced the details of earlier attempts.
  if (hasChecked && details !== undefined) context.heartbeat(details);
  const reply = await callProvider(deps, context, { ...prepared, input, memory });
  const { definition } = prepared.prompt.pinned;
  const model = modelAt(definition, memory.turn);
  if (model === definition.model) return reply;
  return { ...reply, fallback: { model, price: deps.models.resolve(model).price } };
}

/**
 * Reports an error of the model or the store, and returns the failure by which Temporal retries, the run is
 * blocked, or the turn ends.
 */
function reportFailure(attempted: Attempt, thrown: unknown, definition?: AgentDefinition): unknown {
  const { deps, context, input, memory } = attempted;
  if (context.cancellationSignal.aborted) return cancellation(context, memory);
  // Failures of the engine itself, such as a worker that shuts down, have been mapped already.
  if (thrown instanceof ApplicationFailure) return thrown;
  const { reports } = memory;
  const earlier = { reports, ...paymentOf(memory) };
  const fault = findStorageFault(thrown);
  if (fault !== null) return storageFailure(fault, earlier);
  const model = definition && modelAt(definition, memory.turn);
  const failed = asOutage(toModelError(thrown), memory.turn);
  const isLacked = model && !deps.models.knows(model);
  const lacked = isLacked ? { model, meant: deps.models.meant(model) } : null;
  const error = namingWorker(failed, lacked);
  const { attempt, scheduledTimestampMs } = context.info;
  const at = Date.now();
  const uselessReplies = reports.filter(({ type }) => USELESS.includes(type)).length + 1;
  // While a budget is used up, nothing is attempted.
  const tried = reports.filter(({ type }) => type !== BUDGET).length;
  const left = input.attempts === undefined ? {} : { left: input.attempts - tried - 1 };
  const decided = decideFailure(error, {
    attempt,
    elapsedMs: at - scheduledTimestampMs,
    ...(input.blocked !== undefined && { blocked: input.blocked }),
    ...left,
    uselessReplies,
    random: Math.random,
  });
  const decision = definition
    ? passOn(attempted, { definition, error, decision: decided, ...left })
    : decided;
  const report = attemptReport(error, decision, { attempt, at });
  const limit = error instanceof BudgetError ? { limit: error.limit } : {};
  const refused = findRefusedPart(error);
  const why = decision.type === 'failed' ? uselessText(error, uselessReplies) : '';
  const failure = modelFailure(decision, report, { ...earlier, ...limit, refused, why });
  reports.push(report);
  context.log.warn('model call failed', { report, decision: decision.type });
  context.heartbeat(toDetails(memory));
  return failure;
}

/** Decides whether the next attempt calls another of the agent's models, and notes it for that attempt. */
function passOn(
  { deps, memory }: Attempt,
  {
    definition,
    ...failed
  }: Omit<FailedTurn, 'turn' | 'models'> & { readonly definition: AgentDefinition },
): FailureDecision {
  const models = modelsOf(definition).length;
  const before = memory.turn ?? FIRST_TURN;
  const { decision, turn } = decideTurn({ ...failed, turn: before, models });
  const hasMoved = turn.index !== before.index && !isOutOfReach(failed.error.details);
  if (hasMoved) rest(deps.models, modelAt(definition, before), Date.now());
  memory.turn = models === 1 ? null : turn;
  return decision;
}

/**
 * Returns the error of an interrupted attempt. A cancellation carries a decision function's
 * payment; any other interruption leaves that to the next attempt.
 */
function cancellation(context: Context, memory: AttemptMemory): unknown {
  const isCanceled = interruptionCause(context) === 'CANCELLED';
  if (!isCanceled || memory.decideReplies.length === 0) return context.cancellationSignal.reason;
  return new CancelledFailure('CANCELLED', [paymentOf(memory)]);
}

/**
 * Records a reply and adds it to this worker's transcript cache. A reply that cannot be stored whole
 * blocks the run. One that is also too large to be passed on is recorded with a report on the loss.
 */
async function recordCall(
  { deps, context, input, memory }: Attempt,
  { prompt, request }: PreparedCall,
  reply: TracedReply,
): Promise<RecordedReply> {
  const { pinned, userContext } = prompt;
  const { blobs, requests, transcripts } = deps;
  const mayCheck = await beginCheck(reply, memory, { pinned, input, context, blobs });
  const ruleContext = createRuleContext({
    requests,
    pinned,
    input,
    info: context.info,
    userContext,
  });
  const store = trackStore(blobs);
  const checked = { pinned, ruleContext, userContext, request, input, isGivenUp: !mayCheck };
  const source = { ...checked, blobs: store.blobs };
  // User code (schemas, summaries) may have added a secret.
  const recorded = redactJson({ ...(await recordReply(reply, source)), ...decidedBy(memory) });
  const { reports } = memory;
  if (store.loss() !== null) {
    // The next call checks the reply again. This check did not fail, so it does not count.
    memory.paid = await toPaidReply(reply, { checks: 0, blobs });
    const kept = { blocked: input.blocked, reports, ...paymentOf(memory) };
    const failure = memory.paid && unstoredFailure("the model's reply", store, kept);
    if (failure !== null) throw failure;
    reports.push(...reportLoss(context, "the model's reply", store));
  }
  if (input.compact === undefined) {
    transcripts.noteReply(prompt.name, toAssistantMessage(recorded, input));
  }
  return reports.length === 0 ? recorded : { ...recorded, reports };
}

/** Returns the recorded data of a decision function's model calls. */
function decidedBy({ decideReplies }: AttemptMemory): Pick<RecordedReply, 'decided'> {
  if (decideReplies.length === 0) return {};
  const promptTokens = Math.max(...decideReplies.map(({ usage }) => usage.inputTokens));
  return { decided: { modelCalls: decideReplies.length, promptTokens } };
}

/** Returns the message that the workflow creates from a reply. Both must be exactly equal. */
function toAssistantMessage(
  { text, provider, calls }: RecordedReply,
  { turn, step, fork, closing }: CallModelInput,
): PromptMessage {
  const message = { role: 'assistant', text, ...(provider && { provider }) } as const;
  if (closing || calls === undefined) return message;
  const placed = calls.map((call, index) => ({ ...call, id: callId({ turn, step, index, fork }) }));
  return { ...message, calls: placed };
}
