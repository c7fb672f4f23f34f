import { estimateTokens, TOKENS_PER_ATTACHMENT } from '../core/text/estimate.js';
import type { ModelReply, ModelRequest, ModelUsage } from './model.js';

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/**
 * Usage of a call whose provider said nothing, on the high side. Nothing counts as cached: a price
 * that is guessed should not be guessed low.
 */
export function estimateUsage(request: ModelRequest, reply: ModelReply): ModelUsage {
  const messages = request.messages.map((message) => {
    const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
    const attached = message.role === 'user' ? (message.attachments ?? []).length : 0;
    return (
      attached * TOKENS_PER_ATTACHMENT +
      estimateTokens(message.text) +
      sum(calls.map((call) => estimateTokens(call.name + call.arguments)))
    );
  });
  const tools = request.tools.map((tool) =>
    estimateTokens(tool.name + tool.description + JSON.stringify(tool.parameters)),
  );
  const { responseFormat } = request;
  const format = responseFormat === undefined ? 0 : estimateTokens(JSON.stringify(responseFormat));
  return {
    inputTokens: estimateTokens(request.instructions) + sum(messages) + sum(tools) + format,
    outputTokens:
      estimateTokens(reply.text) +
      sum(reply.calls.map((call) => estimateTokens(call.name + call.arguments))),
    cachedTokens: 0,
  };
}
