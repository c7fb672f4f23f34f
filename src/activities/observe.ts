import type { Context } from '@temporalio/activity';
import { failSpan, inSpan, CLIENT_SPAN, INTERNAL_SPAN } from '../telemetry/spans.js';
import type { CallModelInput, RunToolInput, RunToolResult } from '../core/contract.js';
import { costOf } from '../core/limits.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import type { ResolvedModel } from '../models/model-catalog.js';
import type { ModelReply, ModelRequest } from '../models/model.js';
import { redactJson } from '../secrets/redact-json.js';

/** What a model call is about. */
interface ModelCall {
  readonly definition: AgentDefinition;
  readonly model: Pick<ResolvedModel, 'name' | 'provider' | 'price'>;
  readonly input: CallModelInput;
  readonly request: ModelRequest;
  /** Whether spans contain what is said; it may be confidential. */
  readonly content: boolean;
}

const MICROS = 1e6;
const MAX_CONTENT = 32_000;

/** Calls a model in a span, under the conventions for generative AI, and counts the call. */
export async function observeModelCall(
  { info, metricMeter: meter }: Context,
  { definition, model, input, request, content }: ModelCall,
  call: () => Promise<ModelReply>,
): Promise<ModelReply> {
  const labels = { agent: definition.name, model: model.name };
  const attributes = {
    ...placeOf(info, input),
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': model.provider,
    'gen_ai.request.model': model.name,
    'gen_ai.agent.name': definition.name,
    ...(content && { 'gen_ai.input.messages': contentText(request.messages) }),
  };
  const options = { kind: CLIENT_SPAN, attributes };
  return await inSpan(`chat ${model.name}`, options, async (span) => {
    const calls = meter.createCounter('perdure_model_calls', '', 'Attempts at model calls');
    try {
      const reply = await call();
      calls.add(1, { ...labels, outcome: reply.finish });
      // The calls of a decision function have spans and counts of their own.
      const usage = model.provider === 'function' ? undefined : reply.usage;
      const { inputTokens = 0, outputTokens = 0, cachedTokens = 0 } = usage ?? {};
      span.setAttributes({
        'gen_ai.response.finish_reasons': [reply.finish],
        ...(usage && {
          'gen_ai.usage.input_tokens': inputTokens,
          'gen_ai.usage.output_tokens': outputTokens,
          'gen_ai.usage.cache_read.input_tokens': cachedTokens,
        }),
        ...(reply.requestId !== undefined && { 'gen_ai.response.id': reply.requestId }),
        ...(content && {
          'gen_ai.output.messages': contentText([{ role: 'assistant', text: reply.text }]),
        }),
      });
      const tokens = meter.createCounter('perdure_tokens', '', 'Tokens of model calls');
      tokens.add(inputTokens, { ...labels, type: 'input' });
      tokens.add(outputTokens, { ...labels, type: 'output' });
      const cost = usage === undefined ? null : costOf(usage, model.price);
      if (cost !== null) {
        const spent = meter.createCounter('perdure_cost_microdollars', '', 'Cost of model calls');
        spent.add(Math.round(cost * MICROS), labels);
      }
      return reply;
    } catch (error) {
      calls.add(1, { ...labels, outcome: 'error' });
      throw error;
    }
  });
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
  return await inSpan(`execute_tool ${name}`, options, async (span) => {
    const calls = meter.createCounter('perdure_tool_calls', '', 'Attempts at tool calls');
    const count = (outcome: string): void => calls.add(1, { agent, tool: name, outcome });
    try {
      const result = await execute();
      const outcome = result.ok === true ? 'ok' : result.ok === false ? 'error' : result.ok;
      count(outcome);
      if (outcome !== 'ok') failSpan(span, Object.assign(new Error(outcome), { name: outcome }));
      return result;
    } catch (error) {
      count('retried');
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
