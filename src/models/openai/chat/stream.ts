import { isObject } from '../../../core/json.js';
import { ignoreDeltas, type EmitDelta } from '../../deltas.js';
import type { StreamAssembly } from '../../wire/api.js';
import { joinText } from '../../wire/content.js';
import { MAX_LOGPROBS } from '../logprobs.js';
import { createReplyMeter } from '../../wire/reply-limits.js';
import { findUsage } from '../../wire/usage.js';
import { assembleCalls } from './stream-calls.js';

/** Assembles the chunks of a stream into the completion of an unstreamed reply. */
export function assembleCompletion(emit: EmitDelta = ignoreDeltas): StreamAssembly {
  const meter = createReplyMeter();
  const assembly = assembleCalls(emit, meter);
  const { calls } = assembly;
  let content = '';
  let reasoning = '';
  let refusal = '';
  let reason: unknown = null;
  let usage: unknown;
  const logprobs: unknown[] = [];

  return {
    add(chunk) {
      meter.event();
      if (!isObject(chunk)) return;
      usage = findUsage(chunk) ?? usage;
      const choice: unknown = Array.isArray(chunk['choices']) ? chunk['choices'][0] : undefined;
      if (!isObject(choice)) return;
      if (isReason(choice['finish_reason'])) reason = choice['finish_reason'];
      const tokens = isObject(choice['logprobs']) ? choice['logprobs']['content'] : undefined;
      if (Array.isArray(tokens) && logprobs.length < MAX_LOGPROBS) {
        logprobs.push(...tokens.slice(0, MAX_LOGPROBS));
      }
      const delta = isObject(choice['delta']) ? choice['delta'] : {};
      const newReasoning = joinText(delta['reasoning_content']);
      const newContent = joinText(delta['content']);
      const newRefusal = joinText(delta['refusal']);
      meter.text(newReasoning, newContent, newRefusal);
      reasoning += newReasoning;
      content += newContent;
      refusal += newRefusal;
      // Servers use either name; only `reasoning_content` may have to go back.
      const shown = newReasoning || joinText(delta['reasoning']);
      if (shown !== '') emit({ kind: 'reasoning', text: shown });
      if (newContent + newRefusal !== '') emit({ kind: 'text', text: newContent + newRefusal });
      for (const part of toList(delta['tool_calls'])) assembly.add(part);
    },
    isFinished: () => reason !== null,
    hasContent: () => content !== '' || refusal !== '' || calls.length > 0,
    isThinking: () => content === '' && refusal === '' && calls.length === 0,
    answer: () => ({
      choices: [
        {
          finish_reason: reason,
          ...(logprobs.length > 0 && { logprobs: { content: logprobs } }),
          message: {
            content,
            refusal,
            reasoning_content: reasoning,
            tool_calls: calls.map((call) => ({
              function: { name: call.name, arguments: call.arguments },
              extra_content: call.extra,
            })),
          },
        },
      ],
      usage,
    }),
  };
}

/**
 * Whether a value is a finish reason. While the answer continues, it is null, missing, empty, or,
 * on some servers, the word null.
 */
function isReason(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 'null';
}

/** Returns calls as a list, because TGI sends a single call instead of a list. */
function toList(calls: unknown): readonly unknown[] {
  return Array.isArray(calls) ? calls : [calls];
}
