import type { Context } from '@temporalio/activity';
import { CancelledFailure } from '@temporalio/common';
import {
  inSpan,
  quietly,
  CLIENT_SPAN,
  INTERNAL_SPAN,
  type SpanOptions,
} from '../telemetry/spans.js';
import type {
  CallModelInput,
  LoadAgentInput,
  RunToolInput,
  RunToolResult,
} from '../core/run/contract.js';
import type { SpanPlace } from '../core/transcript/call-result.js';
import type { RunConfig } from '../core/state/state.js';
import type { RecordedReply } from '../core/transcript/outcome.js';
import { costOf } from '../core/rules/spending.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import type { ResolvedModel } from '../models/model-catalog.js';
import { type ModelReply, type ModelRequest, isModelError } from '../models/model.js';
import { redactJson } from '../secrets/redact.js';

/** The attributes of a model call. */
interface ModelCall {
  readonly definition: AgentDefinition;
  readonly model: Pick<ResolvedModel, 'name' | 'provider' | 'price'>;
  readonly input: Pick<CallModelInput, 'turn' | 'step'>;
  readonly request: ModelRequest;
  /** Whether spans contain message content, which may be confidential. */
  readonly content: boolean;
}

type Attributes = SpanOptions['attributes'];

/** The provider of a decision. Its function's model calls have their own spans. */
export const FUNCTION = 'function';
const MICROS = 1e6;
const MAX_CONTENT = 32_000;

/**
 * A reply with the span of its model call, below which its tool calls are traced, and the fallback
 * that wrote it.
 */
export type TracedReply = ModelReply & SpanPlace & Pick<RecordedReply, 'fallback'>;

/** Calls a model in a span, under the conventions for generative AI, and counts the call. */
export async function observeModelCall(
  { info, metricMeter: meter }: Context,
  { definition, model, input, request, content }: ModelCall,
  call: () => Promise<ModelReply>,
): Promise<TracedReply> {
  const labels = { agent: definition.name, model: model.name, tenant: tenantOf(info) };
  const attributes = {
    ...placeOf(info, input),
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': model.provider,
    'gen_ai.request.model': model.name,
    'gen_ai.agent.name': definition.name,
    ...(content && {
      'gen_ai.input.messages': quietly(() => contentText(request.messages)) ?? '',
    }),
  };
  const options = { kind: CLIENT_SPAN, attributes, content };
  const count = (outcome: string): void => {
    // The model calls of a decision function are counted separately.
    if (model.provider === FUNCTION) return;
    quietlyCount(meter, { ...CALLS, labels: { ...labels, outcome } });
  };
  const began = performance.now();
  const measure = (error?: unknown): void => {
    if (model.provider !== FUNCTION) recordDuration(meter, { model, labels, began, error });
  };
  return await inSpan(`chat ${model.name}`, options, async (noted) => {
    try {
      const reply = await call();
      measure();
      count(reply.finish);
      noted.attributes(quietly(() => replyAttributes(reply, { model, content })) ?? {});
      countUsage(meter, reply, { model, labels });
      const span = noted.traceparent();
      return span === undefined ? reply : { ...reply, span };
    } catch (error) {
      measure(error);
      count(isCancellation(error) ? 'cancelled' : 'error');
      throw error;
    }
  });
}

/** Returns the tenant for whom the server gives the activity its share; empty if there is none. */
function tenantOf({ priority }: Context['info']): string {
  return priority?.fairnessKey ?? '';
}

const CALLS = { name: 'perdure_model_calls', about: 'Attempts at model calls' };
const TOOLS = { name: 'perdure_tool_calls', about: 'Attempts at tool calls' };
const TOKENS = { name: 'perdure_tokens', about: 'Tokens of model calls' };
const COST = { name: 'perdure_cost_microdollars', about: 'Cost of model calls' };

// The conventions of OpenTelemetry for generative AI, in the form of Prometheus, whose names have no dots.
const USAGE = {
  name: 'gen_ai_client_token_usage',
  unit: '{token}',
  about: 'Tokens of a model call',
};
const DURATION = {
  name: 'gen_ai_client_operation_duration',
  unit: 's',
  about: 'Time of a model call',
};

type Labels = Readonly<Record<string, string>>;

interface Measured {
  readonly model: ModelCall['model'];
  readonly labels: Labels;
}

function conventionalLabels({ model, labels }: Measured): Labels {
  return {
    gen_ai_operation_name: 'chat',
    gen_ai_provider_name: model.provider,
    gen_ai_request_model: model.name,
    gen_ai_agent_name: labels['agent'] ?? '',
    tenant: labels['tenant'] ?? '',
  };
}

function recordDuration(
  meter: Context['metricMeter'],
  { began, error, ...measured }: Measured & { readonly began: number; readonly error: unknown },
): void {
  const { name, unit, about } = DURATION;
  const seconds = (performance.now() - began) / 1_000;
  const type = isModelError(error) ? error.details.type : '_OTHER';
  const labels = {
    ...conventionalLabels(measured),
    error_type: error === undefined ? '' : isCancellation(error) ? 'cancelled' : type,
  };
  quietly(() => meter.createHistogram(name, 'float', unit, about).record(seconds, labels));
}

function recordTokens(
  meter: Context['metricMeter'],
  { tokens, type, ...measured }: Measured & { readonly tokens: number; readonly type: string },
): void {
  const { name, unit, about } = USAGE;
  const labels = { ...conventionalLabels(measured), gen_ai_token_type: type };
  quietly(() => meter.createHistogram(name, 'int', unit, about).record(tokens, labels));
}

/**
 * Adds to a counter. A value that no counter accepts, such as a negative one from a custom model,
 * is ignored.
 */
function quietlyCount(
  meter: Context['metricMeter'],
  counted: {
    readonly name: string;
    readonly about: string;
    readonly labels: Labels;
    readonly value?: number;
  },
): void {
  const { name, about, labels, value = 1 } = counted;
  quietly(() => meter.createCounter(name, '', about).add(value, labels));
}

function countUsage(
  meter: Context['metricMeter'],
  reply: ModelReply,
  { model, labels }: Pick<ModelCall, 'model'> & { readonly labels: Labels },
): void {
  if (model.provider === FUNCTION || reply.usage === undefined) return;
  const { inputTokens, outputTokens } = reply.usage;
  for (const [type, tokens] of [
    ['input', inputTokens],
    ['output', outputTokens],
  ] as const) {
    quietlyCount(meter, { ...TOKENS, labels: { ...labels, type }, value: tokens });
    recordTokens(meter, { model, labels, tokens, type });
  }
  const cost = costOf(reply.usage, model.price);
  if (cost !== null) quietlyCount(meter, { ...COST, labels, value: Math.round(cost * MICROS) });
}

function replyAttributes(
  { finish, usage, requestId, text }: ModelReply,
  { model, content }: Pick<ModelCall, 'model' | 'content'>,
): Attributes {
  return {
    'gen_ai.response.finish_reasons': [finish],
    ...(usage &&
      model.provider !== FUNCTION && {
        'gen_ai.usage.input_tokens': usage.inputTokens,
        'gen_ai.usage.output_tokens': usage.outputTokens,
        'gen_ai.usage.cache_read.input_tokens': usage.cachedTokens,
      }),
    ...(requestId !== undefined && { 'gen_ai.response.id': requestId }),
    ...(content && { 'gen_ai.output.messages': contentText([{ role: 'assistant', text }]) }),
  };
}

/**
 * Loads a called agent in its own span, which becomes the span of the run. The model calls of its
 * first turn are below it, although it ends before them. Other runs are below the span of their
 * starter.
 */
export async function observeLoad(
  { info }: Context,
  { agent, depth = 0 }: LoadAgentInput,
  load: () => Promise<RunConfig>,
): Promise<RunConfig> {
  if (depth === 0) return await load();
  const attributes = {
    ...placeOf(info, { turn: 1, step: 0 }),
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': agent,
  };
  const options = { kind: INTERNAL_SPAN, attributes };
  return await inSpan(`invoke_agent ${agent}`, options, async (noted) => {
    const config = await load();
    const span = noted.traceparent();
    return span === undefined ? config : { ...config, span };
  });
}

function isCancellation(error: unknown): boolean {
  return error instanceof CancelledFailure;
}

/** Executes a tool call in a span, and counts it. */
export async function observeToolCall(
  { info, metricMeter: meter }: Context,
  { agent, input }: { readonly agent: string; readonly input: RunToolInput },
  execute: () => Promise<RunToolResult>,
): Promise<RunToolResult> {
  const { name, id } = input.call;
  const attributes = {
    ...placeOf(info, input),
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.call.id': id,
    'gen_ai.agent.name': agent,
  };
  const options = { kind: INTERNAL_SPAN, attributes };
  const count = (outcome: string): void =>
    quietlyCount(meter, {
      ...TOOLS,
      labels: { agent, tool: name, tenant: tenantOf(info), outcome },
    });
  return await inSpan(`execute_tool ${name}`, options, async (noted) => {
    try {
      const result = await execute();
      const outcome = result.ok === true ? 'ok' : result.ok === false ? 'error' : result.ok;
      count(outcome);
      // A server that asks a person first has not failed.
      if (outcome !== 'ok' && outcome !== 'input_required')
        noted.fail(Object.assign(new Error(outcome), { name: outcome }));
      return result;
    } catch (error) {
      count(isCancellation(error) ? 'cancelled' : 'retried');
      throw error;
    }
  });
}

function placeOf(
  { workflowExecution, attempt }: Context['info'],
  { turn, step }: { readonly turn: number; readonly step: number },
) {
  const { workflowId = '', runId = '' } = workflowExecution ?? {};
  return {
    'gen_ai.conversation.id': workflowId,
    // The names that Temporal's own spans use.
    temporalWorkflowId: workflowId,
    temporalRunId: runId,
    'perdure.turn': turn,
    'perdure.step': step,
    'perdure.attempt': attempt,
  };
}

function contentText(messages: unknown): string {
  return JSON.stringify(redactJson(messages)).slice(0, MAX_CONTENT);
}
