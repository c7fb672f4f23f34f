import type OpenAI from 'openai';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { readScript, replyOf, resultOf } from '../conversation.js';
import { INSTRUCTIONS } from '../subject/agents.js';

type WireMessage = OpenAI.Chat.ChatCompletionMessageParam;

/** A whole conversation in both forms; entry n of `ends` is the length of the nth prompt. */
interface Whole {
  readonly messages: readonly PromptMessage[];
  readonly wire: readonly WireMessage[];
  readonly ends: readonly number[];
}

/**
 * The prompts of the bare loop. The loop has no transcript to build them from, so they are prepared
 * in advance: its model calls carry the same bytes as perdure's, and cost nothing to prepare.
 */
const known = new Map<string, Whole>();

export function promptFor(message: string, step: number): readonly PromptMessage[] {
  const { messages, ends } = whole(message);
  return messages.slice(0, ends[step]);
}

export function wirePromptFor(message: string, step: number): WireMessage[] {
  const { wire, ends } = whole(message);
  // The system message precedes everything that is counted.
  return wire.slice(0, (ends[step] ?? 0) + 1);
}

function whole(message: string): Whole {
  const found = known.get(message);
  if (found !== undefined) return found;
  const made = write(message);
  known.set(message, made);
  return made;
}

function write(message: string): Whole {
  const script = readScript(message);
  const messages: PromptMessage[] = [{ role: 'user', text: message }];
  const wire: WireMessage[] = [
    { role: 'system', content: INSTRUCTIONS },
    { role: 'user', content: message },
  ];
  const ends = [1];
  for (let step = 0; step < script.steps; step += 1) {
    const { text, calls } = replyOf(script, step);
    const asked = calls.map((call, index) => ({
      id: `call_1_${step + 1}_${index}`,
      name: call.tool,
      arguments: JSON.stringify(call.arguments),
      result: resultOf(call.arguments),
    }));
    messages.push({
      role: 'assistant',
      text,
      calls: asked.map((call) => ({
        id: call.id,
        name: call.name,
        arguments: call.arguments,
        digest: '',
      })),
    });
    wire.push({
      role: 'assistant',
      content: text,
      tool_calls: asked.map((call) => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
      })),
    });
    for (const { id, result } of asked) {
      messages.push({ role: 'tool', text: result, callId: id });
      wire.push({ role: 'tool', tool_call_id: id, content: result });
    }
    ends.push(messages.length);
  }
  return { messages, wire, ends };
}
