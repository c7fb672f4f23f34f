import { estimateTokens, TOKENS_PER_ATTACHMENT } from '../core/text/estimate.js';
import type { ModelReply, ModelRequest, ModelUsage } from './model.js';

/**
 * Estimates the usage of a call whose provider reported none, on the high side. No token counts as
 * cached, because cached tokens are cheaper.
 */
export function estimateUsage(request: ModelRequest, reply: ModelReply): ModelUsage {
  const messages = request.messages.map((message) => {
    const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
    const attached = message.role === 'user' ? (message.attachments ?? []).length : 0;
    return attached * TOKENS_PER_ATTACHMENT + estimateTokens(message.text) + estimateCalls(calls);
  });
  const tools = request.tools.map((tool) =>
    estimateTokens(tool.name + tool.description + JSON.stringify(tool.parameters)),
  );
  const { responseFormat } = request;
  const format = responseFormat === undefined ? 0 : estimateTokens(JSON.stringify(responseFormat));
  return {
    inputTokens: estimateTokens(request.instructions) + sum(messages) + sum(tools) + format,
    outputTokens: estimateTokens(reply.text) + estimateCalls(reply.calls),
    cachedTokens: 0,
  };
}

function estimateCalls(
  calls: readonly { readonly name: string; readonly arguments: string }[],
): number {
  return sum(calls.map((call) => estimateTokens(call.name + call.arguments)));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
