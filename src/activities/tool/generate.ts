import type { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { z } from 'zod';
import { answerContract } from '../../agents/agent-parts.js';
import { errorText } from '../../core/transcript/call-result.js';
import type { NodeAllowance } from '../../core/run/complete-batch.js';
import type { RunToolInput, RunToolResult } from '../../core/run/contract.js';
import type { AgentDefinition, OutputDefinition } from '../../core/definition/definition.js';
import type { Payment } from '../../core/interpret/block.js';
import { sha256Hex, isObject, type JsonObject } from '../../core/text/json.js';
import type { Generated, GeneratedReply } from '../../core/guards/recorded.js';
import { toUsage } from '../../core/rules/spending.js';
import { repairText } from '../../core/run/on-reply.js';
import { headOf } from '../../core/text/text.js';
import {
  isModelError,
  type ModelError,
  type ModelReply,
  type ModelRequest,
  estimateUsage,
} from '../../models/model.js';
import { parseWithZod } from '../../output/parse-output.js';
import { extractJson } from '../../output/extract-json.js';
import { normalizeError } from '../../tools/result/plain.js';
import type { NodeContext } from '../../tools/tool.js';
import { expected } from '../../validation/check-options.js';
import { assertCurrentAttempt, interruptionCause, retryFailure } from '../attempt.js';
import type { ActivityDependencies } from '../activity-context.js';
import { answerSchema } from '../model/answer-formats.js';
import {
  paymentOf,
  readMemory,
  spentBy,
  toDetails,
  type AttemptMemory,
} from '../model/attempt-memory.js';
import { redactReply } from '../model/call-provider.js';
import {
  BudgetError,
  openDecideCalls,
  type DecideCalls,
  requestDigest,
} from '../model/decide-calls.js';
import { attemptReport, decideFailure, modelFailure } from '../model/model-failures.js';
import { observeModelCall } from '../observe.js';
import { queryWorkflow } from '../prompt.js';

/** Maximum replies to one request, of which the last must fit the schema. */
const MAX_REPLIES = 5;
/** Maximum characters of a reply in the record of a node; its whole effect is in the state. */
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
  /** Returns what the calls have cost, and their replies. */
  report(): Generated;
  /**
   * Returns the result of a function that ended by an error of its model or at a limit; null for any other error.
   * Throws the failure that blocks the run or repeats the attempt.
   */
  onThrown(error: unknown): Promise<RunToolResult | null>;
  /** Returns the failure or the cancellation with the payment for the calls. */
  withPayment(error: unknown): unknown;
}

/** One attempt at a node's call, with its memory and the replies that its function has got. */
interface Attempt {
  readonly deps: ActivityDependencies;
  readonly context: Context;
  readonly input: RunToolInput;
  readonly memory: AttemptMemory;
  readonly replies: GeneratedReply[];
}

/** Creates the generator for one attempt at a node's call. */
export function createGenerator(
  deps: ActivityDependencies,
  context: Context,
  input: RunToolInput,
): Generator {
  const memory = readMemory(context.info, input);
  const attempt: Attempt = { deps, context, input, memory, replies: [] };
  let allowance: Promise<NodeAllowance> | undefined;
  const getAllowance = (): Promise<NodeAllowance> =>
    (allowance ??= queryWorkflow(context, deps).allowance());
  const open = openDecideCalls({
    blobs: deps.blobs,
    context,
    call: (request, signal) => callModel(attempt, request, signal),
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
    report: () => reportOf(attempt),
    async onThrown(error) {
      if (error instanceof BudgetError) {
        const { message, limit } = error;
        return { ok: false, text: errorText({ type: 'tool_error', message }), limit };
      }
      if (!isModelError(error)) return null;
      return onModelError(error, attempt, await getAllowance());
    },
    withPayment: (error) => withPayment(error, attempt),
  };
}

/** Calls the model of a request once. */
async function callModel(
  { deps, context, input, memory }: Attempt,
  request: ModelRequest,
  signal: AbortSignal,
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
    redactReply(await model.model.call(named, { signal })),
  );
  return reply;
}

/** Returns what a function gets from `generate`. */
async function answer(attempt: Attempt, calls: DecideCalls, given: unknown): Promise<unknown> {
  const { deps, replies } = attempt;
  const options = checked(given);
  const model = options.model ?? (await definitionOf(attempt)).model;
  const { output } = options;
  const ask = async (request: ModelRequest): Promise<string> => {
    const reply = await calls.reply(request, sha256Hex(`${model}\n${requestDigest(request)}`));
    const used = reply.usage ?? { ...estimateUsage(request, reply), estimated: true as const };
    const usage = toUsage(used, deps.models.resolve(model).price);
    replies.push({ model, text: headOf(reply.text, SHOWN_CHARACTERS), usage });
    return reply.text;
  };
  const form = output && answerContract('generate', output).definition;
  const request = requestOf(model, options, form);
  return output === undefined ? await ask(request) : await askUntilFit(request, { ask, output });
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

const NO_REQUEST: ModelRequest = {
  model: '',
  instructions: '',
  messages: [],
  tools: [],
  toolChoice: 'none',
  settings: {},
};

const text = z.string().min(1);
const optionsShape = z.strictObject({
  model: text.optional(),
  message: text,
  instructions: z.string().optional(),
  settings: z.record(z.string(), z.json()).optional(),
  output: expected<z.ZodType>(
    'a zod type, such as z.object({…})',
    (value) => value instanceof z.ZodType,
  ).optional(),
});

type Checked = z.output<typeof optionsShape>;

function checked(given: unknown): Checked {
  const parsed = optionsShape.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join('.') ?? '';
  throw new Error(`context.generate: ${at === '' ? '' : `${at}: `}${issue?.message ?? ''}`);
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

function requestOf(
  model: string,
  { message, instructions = '', settings = {} }: Checked,
  form: OutputDefinition | undefined,
): ModelRequest {
  const responseFormat = form && answerSchema({ output: form });
  return {
    ...NO_REQUEST,
    model,
    instructions,
    messages: [{ role: 'user', text: message }],
    settings,
    ...(responseFormat && { responseFormat }),
  };
}

/** Asks until a reply fits the schema, and returns its value. Rejects after the last reply. */
async function askUntilFit(
  first: ModelRequest,
  given: { readonly ask: (request: ModelRequest) => Promise<string>; readonly output: z.ZodType },
): Promise<unknown> {
  const { ask, output } = given;
  let request = first;
  for (let attempt = 1; ; attempt += 1) {
    const reply = await ask(request);
    const extracted = extractJson(reply);
    const parsed = extracted.ok ? await parseWithZod(output, extracted.value) : extracted;
    if (parsed.ok) return parsed.output;
    if (attempt >= MAX_REPLIES) {
      throw new Error(
        `context.generate: no reply of ${attempt} fits the schema: ${parsed.problem}`,
      );
    }
    const repair = repairText(parsed.problem, { attempt, attempts: MAX_REPLIES });
    const messages = [
      ...first.messages,
      { role: 'assistant', text: reply } as const,
      { role: 'user', text: repair } as const,
    ];
    request = { ...first, messages };
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
