import { isObject } from '../core/json.js';
import { MOST_LOGPROBS } from './logprobs.js';
import { textOf } from './openai-reply.js';
import { usageIn } from './openai-usage.js';
import { addPiece, type AssembledCall } from './stream-calls.js';

/** Gathers the chunks of a stream into the shape of a completion that was sent whole. */
export interface StreamAssembly {
  add(chunk: unknown): void;
  /** True once the provider has given its reason to end: only then is the answer whole. */
  isFinished(): boolean;
  /** True when anything was said or asked for yet. */
  hasContent(): boolean;
  completion(): unknown;
}

/** Null, nothing and, of some servers, the words for it stand for an answer that goes on. */
function isReason(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 'null';
}

/** A list, or as of TGI the one call itself. */
function piecesOf(calls: unknown): readonly unknown[] {
  return Array.isArray(calls) ? calls : [calls];
}

export function assembleStream(): StreamAssembly {
  const calls: AssembledCall[] = [];
  let content = '';
  let refusal = '';
  let reason: unknown = null;
  let usage: unknown;
  const logprobs: unknown[] = [];

  return {
    add(chunk) {
      if (!isObject(chunk)) return;
      usage = usageIn(chunk) ?? usage;
      const choice: unknown = Array.isArray(chunk['choices']) ? chunk['choices'][0] : undefined;
      if (!isObject(choice)) return;
      if (isReason(choice['finish_reason'])) reason = choice['finish_reason'];
      const told = isObject(choice['logprobs']) ? choice['logprobs']['content'] : undefined;
      if (Array.isArray(told) && logprobs.length < MOST_LOGPROBS) logprobs.push(...told);
      const delta = isObject(choice['delta']) ? choice['delta'] : {};
      content += textOf(delta['content']);
      refusal += textOf(delta['refusal']);
      for (const piece of piecesOf(delta['tool_calls'])) addPiece(calls, piece);
    },
    isFinished: () => reason !== null,
    hasContent: () => content !== '' || refusal !== '' || calls.length > 0,
    completion: () => ({
      choices: [
        {
          finish_reason: reason,
          ...(logprobs.length > 0 && { logprobs: { content: logprobs } }),
          message: {
            content,
            refusal,
            tool_calls: calls.map((call) => ({
              function: { name: call.name, arguments: call.arguments },
            })),
          },
        },
      ],
      usage,
    }),
  };
}
