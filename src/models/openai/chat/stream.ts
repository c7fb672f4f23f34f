import { isObject } from '../../../core/json.js';
import { untold, type Tell } from '../../deltas.js';
import { MOST_LOGPROBS } from '../logprobs.js';
import type { StreamAssembly } from '../api.js';
import { textOf } from './reply.js';
import { usageIn } from '../usage.js';
import { createReplyMeter } from '../../reply-limits.js';
import { assembleCalls } from '../../stream-calls.js';

/** Null, nothing and, of some servers, the words for it stand for an answer that goes on. */
function isReason(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 'null';
}

/** A list, or as of TGI the one call itself. */
function piecesOf(calls: unknown): readonly unknown[] {
  return Array.isArray(calls) ? calls : [calls];
}

/** Servers differ in the name of what a model thinks; it is no part of the reply. */
function reasoningIn(delta: Record<string, unknown>): string {
  return textOf(delta['reasoning_content']) || textOf(delta['reasoning']);
}

/** Gathers the chunks of a stream into the shape of a completion that was sent whole. */
export function assembleStream(tell: Tell = untold): StreamAssembly {
  const meter = createReplyMeter();
  const assembly = assembleCalls(tell, meter);
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
      usage = usageIn(chunk) ?? usage;
      const choice: unknown = Array.isArray(chunk['choices']) ? chunk['choices'][0] : undefined;
      if (!isObject(choice)) return;
      if (isReason(choice['finish_reason'])) reason = choice['finish_reason'];
      const told = isObject(choice['logprobs']) ? choice['logprobs']['content'] : undefined;
      if (Array.isArray(told) && logprobs.length < MOST_LOGPROBS) {
        logprobs.push(...told.slice(0, MOST_LOGPROBS));
      }
      const delta = isObject(choice['delta']) ? choice['delta'] : {};
      const thought = reasoningIn(delta);
      const kept = textOf(delta['reasoning_content']);
      reasoning += kept;
      if (thought !== '') tell({ type: 'reasoning', text: thought });
      const said = textOf(delta['content']);
      const refused = textOf(delta['refusal']);
      meter.text(kept, said, refused);
      content += said;
      refusal += refused;
      if (said + refused !== '') tell({ type: 'text', text: said + refused });
      for (const piece of piecesOf(delta['tool_calls'])) assembly.add(piece);
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
