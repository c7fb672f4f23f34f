import type { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { z } from 'zod';
import { errorText } from '../../core/transcript/call-result.js';
import type { NodeAllowance } from '../../core/run/complete-batch.js';
import type { RunToolInput, RunToolResult } from '../../core/run/contract.js';
import type { AgentDefinition } from '../../core/definition/definition.js';
import type { Payment } from '../../core/interpret/block.js';
import { sha256Hex, isObject, type JsonObject } from '../../core/text/json.js';
import type { Generated, GeneratedReply } from '../../core/guards/recorded.js';
import { toUsage } from '../../core/rules/spending.js';
import { itemOfCall, nodeOfCall } from '../../core/state/turn-definition.js';
import { repairText } from '../../core/run/on-reply.js';
import { shorten } from '../../core/text/text.js';
import {
  type EmitDelta,
  isModelError,
  type ModelContext,
  type ModelError,
  type ModelReply,
  type ModelRequest,
  estimateUsage,
  generatedDigest,
} from '../../models/model.js';
import { NO_REQUEST } from '../../models/uncallable.js';
import { parseWithZod } from '../../output/parse-output.js';
import { extractJson } from '../../output/extract-json.js';
import { normalizeError } from '../../tools/result/plain.js';
import type { NodeContext } from '../../tools/tool.js';
import { assertCurrentAttempt, interruptionCause, retryFailure } from '../attempt.js';
import type { ActivityDependencies } from '../activity-context.js';
import {
  paymentOf,
  readMemory,
  spentBy,
  toDetails,
  type AttemptMemory,
} from '../model/attempt-memory.js';
import { checkedModel } from '../model/checked-reply.js';
import { redactReply, type LiveReply, openLiveReply } from '../model/call-provider.js';
import {
  BudgetError,
  openDecideCalls,
  type DecideCalls,
  requestDigest,
} from '../model/decide-calls.js';
import {
  assertAnswer,
  attemptReport,
  decideFailure,
  modelFailure,
} from '../model/model-failures.js';
import { retryStore } from '../fork-messages.js';
import { observeModelCall } from '../observe.js';
import { queryWorkflow } from '../prompt.js';
import { checked, repairRequest, requestOf } from './generate-request.js';

/** Maximum replies to one request, of which the last must fit the schema. */
const MAX_REPLIES = 5;
/** Maximum characters of a reply in the history; the whole of a longer one is offloaded. */
const SHOWN_CHARACTERS = 2_000;
/** The activity has a limited number of attempts, so the run is blocked before they are used up. */
const QUICK_ATTEMPTS = 4;

/** The model calls of one attempt at a node's function. */
export interface Generator {
  /** Calls the function with its `generate`, whose calls under way end with the function. */
  during<T>(
    signal: AbortSignal,
    call: (generate: NodeContext['generate']) => T | Promise<T>,
  ): Promise<T>;
  /** Returns the data for the next attempt; undefined if there is none. */
  details(): JsonObject | undefined;
  /** Returns the result of the function with what its calls have cost, and their replies. */
  withReport(result: RunToolResult): RunToolResult;
  /**
   * Returns the result of a function that ended by an error of its model or at a limit; null for any other error.
   * Throws the failure that blocks the run or repeats the attempt.
   */
  onThrown(error: unknown): Promise<RunToolResult | null>;
  /** Returns the failure or the cancellation with the payment for the calls. */
  withPayment(error: unknown): unknown;
  /** Ends the live replies. Readers that join meanwhile get all of them, also those that are complete. */
  close(): void;
}

/** One attempt at a node's call, with its memory and the replies that its function has got. */
interface Attempt {
  readonly deps: ActivityDependencies;
  readonly context: Context;
  readonly input: RunToolInput;
  readonly memory: AttemptMemory;
  readonly replies: GeneratedReply[];
  /** The replies on their way to readers; null for one that nothing can read. */
  readonly live: (LiveReply | null)[];
}

/** Creates the generator for one attempt at a node's call. */
export function createGenerator(
  deps: ActivityDependencies,
  context: Context,
  input: RunToolInput,
): Generator {
  const memory = readMemory(context.info, input);
  const attempt: Attempt = { deps, context, input, memory, replies: [], live: [] };
  let allowance: Promise<NodeAllowance> | undefined;
  const getAllowance = (): Promise<NodeAllowance> =>
    (allowance ??= queryWorkflow(context, deps).allowance());
  const open = openDecideCalls({
    blobs: deps.blobs,
    context,
    call: (request, signal, onDelta) =>
      callModel(attempt, request, { signal, ...(onDelta && { onDelta }) }),
    memory,
    words: { name: 'context.generate', what: 'node' },
    priceOf: ({ model }) => deps.models.resolve(model).price,
    left: async () => (await getAllowance()).left,
    hasReserved: false,
  });
  return {
    async during(signal, call) {
      const calls = open(NO_REQUEST, signal);
      try {
        const generate = (given: unknown): Promise<unknown> => answer(attempt, calls, given);
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the value fits the schema
        const returned = await call(generate as NodeContext['generate']);
        calls.cutOff();
        return returned;
      } catch (error) {
        await calls.idle();
        throw error;
      }
    },
    details: () => toDetails(memory),
    withReport(result) {
      const hasEnded = result.ok !== 'undecided' && result.ok !== 'input_required';
      return hasEnded ? { ...result, ...reportOf(attempt) } : result;
    },
    async onThrown(error) {
      if (error instanceof BudgetError) {
        const { message, limit } = error;
        return { ok: false, text: errorText({ type: 'tool_error', message }), limit };
      }
      if (!isModelError(error)) return null;
      return onModelError(error, attempt, await getAllowance());
    },
    withPayment: (error) => withPayment(error, attempt),
    close() {
      for (const reply of attempt.live) reply?.end();
    },
  };
}

/** Calls the model of a request once. */
async function callModel(
  { deps, context, input, memory }: Attempt,
  request: ModelRequest,
  stream: ModelContext,
): Promise<ModelReply> {
  await assertCurrentAttempt(context).catch((error: unknown) => {
    throw retryFailure(normalizeError(error).message);
  });
  const details = toDetails(memory);
  // The heartbeat of the check has replaced the details of earlier attempts.
  if (details !== undefined) context.heartbeat(details);
  const model = deps.models.resolve(request.model);
  const definition = await definitionOf({ deps, context, input });
  const named = { ...request, model: model.name };
  const content = deps.captureContent === true;
  const about = { definition, model, input, request: named, content };
  const { span: _, ...reply } = await observeModelCall(context, about, async () =>
    redactReply(await checkedModel(model.model).call(named, stream)),
  );
  return reply;
}

/** A reply on its way to readers. */
interface StreamedReply {
  /** Makes the call. What readers have of a reply that does not arrive is void. */
  during(call: (onDelta?: EmitDelta) => Promise<ModelReply>): Promise<ModelReply>;
  /** Voids the reply for readers, because it does not fit. */
  readonly refuse: () => void;
}

/** Opens the next reply of an attempt for those who read the run. */
async function openReply(attempt: Attempt): Promise<StreamedReply> {
  const { deps, context, input, live } = attempt;
  const number = live.push(null);
  const definition = await definitionOf(attempt);
  const item = itemOfCall(definition, input.call);
  const name = nodeOfCall(input.call) ?? '';
  const node = { name, ...(item !== null && { item }), reply: number };
  const stream = openLiveReply(deps.live, context.info, {
    turn: input.turn,
    step: input.step,
    node,
  });
  live[number - 1] = stream;
  const refuse = (): void => stream?.end({ isVoid: true });
  return {
    refuse,
    async during(call) {
      let isStreamed = false;
      const push: EmitDelta = (delta) => {
        isStreamed = true;
        stream?.push(delta);
      };
      try {
        const reply = stream === null ? await call() : await call(push);
        // An earlier attempt has paid for the reply, and its deltas are void.
        if (!isStreamed) stream?.push({ kind: 'text', text: reply.text });
        stream?.flush();
        return reply;
      } catch (error) {
        refuse();
        throw error;
      }
    },
  };
}

/** Makes one model call. `refuse` voids its reply for readers. */
type Ask = (
  request: ModelRequest,
) => Promise<{ readonly text: string; readonly refuse: () => void }>;

/** Returns a reply as the history has it, with which a recording answers the same request. */
async function recordedReply(
  { blobs }: ActivityDependencies,
  request: ModelRequest,
  { text, finish }: ModelReply,
): Promise<Omit<GeneratedReply, 'usage'>> {
  const shown = shorten(text, SHOWN_CHARACTERS);
  const stored = shown === text ? null : await retryStore(() => blobs.put(text));
  const isWhole = stored === null || 'value' in stored;
  return {
    model: request.model,
    text: shown,
    ...(stored !== null && 'value' in stored && { blob: stored.value }),
    // Without the whole reply, a recording cannot answer the request.
    ...(isWhole && { request: generatedDigest(request) }),
    ...(finish !== 'stop' && { finish }),
  };
}

/** Returns what a function gets from `generate`. */
async function answer(attempt: Attempt, calls: DecideCalls, given: unknown): Promise<unknown> {
  const { deps, replies } = attempt;
  const options = checked(given);
  const model = options.model ?? (await definitionOf(attempt)).model;
  const { output } = options;
  const ask: Ask = async (request) => {
    const live = await openReply(attempt);
    const digest = sha256Hex(`${model}\n${requestDigest(request)}`);
    const reply = await live.during((onDelta) => calls.reply(request, digest, onDelta));
    const used = reply.usage ?? { ...estimateUsage(request, reply), estimated: true as const };
    const usage = toUsage(used, deps.models.resolve(model).price);
    replies.push({ ...(await recordedReply(deps, { ...request, model }, reply)), usage });
    try {
      assertAnswer(reply, model);
    } catch (error) {
      live.refuse();
      throw error;
    }
    return { text: reply.text, refuse: live.refuse };
  };
  const request = requestOf(model, options);
  if (output !== undefined) return await askUntilFit(request, { ask, output });
  return (await ask(request)).text;
}

function reportOf({ memory, replies }: Attempt): Generated {
  if (memory.decideReplies.length === 0) return {};
  return {
    spent: spentBy(memory, null),
    ...(replies.length > 0 && { generated: replies }),
  };
}

function payment({ memory }: Attempt): Payment {
  const { paid } = paymentOf(memory);
  return { ...(paid !== undefined && { paid }), spent: spentBy(memory, null) };
}

function withPayment(error: unknown, attempt: Attempt): unknown {
  const { memory, context } = attempt;
  if (memory.decideReplies.length === 0) return error;
  if (error instanceof ApplicationFailure) return withDetails(error, payment(attempt));
  const isCanceled = context.cancellationSignal.aborted;
  if (!isCanceled || interruptionCause(context) !== 'CANCELLED') return error;
  return new CancelledFailure('CANCELLED', [payment(attempt)]);
}

async function definitionOf({
  deps,
  context,
  input,
}: Pick<Attempt, 'deps' | 'context' | 'input'>): Promise<AgentDefinition> {
  const { definition } = await deps.definitions.find(input.definition, () =>
    queryWorkflow(context, deps).definition(),
  );
  return definition;
}

/** Asks until a reply fits the schema, and returns its value. Rejects after the last reply. */
async function askUntilFit(
  first: ModelRequest,
  given: { readonly ask: Ask; readonly output: z.ZodType },
): Promise<unknown> {
  const { ask, output } = given;
  let request = first;
  for (let attempt = 1; ; attempt += 1) {
    const { text: reply, refuse } = await ask(request);
    const extracted = extractJson(reply);
    const parsed = extracted.ok ? await parseWithZod(output, extracted.value) : extracted;
    if (parsed.ok) return parsed.output;
    refuse();
    if (attempt >= MAX_REPLIES) {
      throw new Error(
        `context.generate: no reply of ${attempt} fits the schema: ${parsed.problem}`,
      );
    }
    const repair = repairText(parsed.problem, { attempt, attempts: MAX_REPLIES });
    request = repairRequest(first, { reply, repair });
  }
}

/** Returns the result of a function whose model failed for good; otherwise throws the failure. */
function onModelError(
  error: ModelError,
  node: Attempt,
  { attempts }: NodeAllowance,
): RunToolResult {
  const { context, input } = node;
  const { attempt, scheduledTimestampMs } = context.info;
  const at = Date.now();
  const decided = decideFailure(error, {
    attempt,
    elapsedMs: at - scheduledTimestampMs,
    ...(attempts !== undefined && { left: attempts - attempt }),
    random: Math.random,
  });
  const mustBlock = attempt >= QUICK_ATTEMPTS || input.blocked !== undefined;
  const decision =
    decided.type === 'retry' && mustBlock && attempts === undefined
      ? ({ type: 'blocked', reason: 'provider' } as const)
      : decided;
  const report = attemptReport(error, decision, { attempt, at });
  context.log.warn('model call failed', { report, decision: decision.type });
  if (decision.type !== 'failed') throw modelFailure(decision, report);
  const message = `context.generate: ${report.message}`;
  return { ok: false, text: errorText({ type: 'tool_error', message }) };
}

/** Returns the failure with more fields in its details. */
function withDetails(failure: ApplicationFailure, added: object): ApplicationFailure {
  const { message, type, nonRetryable, nextRetryDelay, details } = failure;
  const first: unknown = details?.[0];
  return ApplicationFailure.create({
    message,
    ...(type && { type }),
    nonRetryable: nonRetryable === true,
    details: [{ ...(isObject(first) ? first : {}), ...added }],
    ...(nextRetryDelay && { nextRetryDelay }),
  });
}
