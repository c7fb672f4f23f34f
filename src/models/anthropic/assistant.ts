import type {
  ContentBlockParam,
  RedactedThinkingBlockParam,
  TextBlockParam,
  ThinkingBlockParam,
} from '@anthropic-ai/sdk/resources/messages';
import { isObject, parseJson, type JsonObject } from '../../core/json.js';
import type { ModelReply } from '../model.js';
import {
  getReplayedItems,
  type AssistantPromptMessage,
  type Replay,
} from '../wire/replayed-items.js';

/**
 * Extracts the thoughts of a reply, which go back to the provider unchanged, and their places among
 * the texts and calls: `characters` of the text or one `call` mark their positions in the reply.
 * Returns undefined for a reply without thoughts.
 */
export function extractThoughts(content: readonly unknown[], from: string): ModelReply['provider'] {
  const items: JsonObject[] = [];
  let calls = 0;
  let hasThoughts = false;
  for (const block of content) {
    if (!isObject(block)) continue;
    if (block['type'] === 'tool_use') items.push({ call: calls++ });
    else if (block['type'] === 'text') {
      items.push({ characters: typeof block['text'] === 'string' ? block['text'].length : 0 });
    } else if (block['type'] === 'thinking' || block['type'] === 'redacted_thinking') {
      hasThoughts = true;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
      items.push(block as JsonObject);
    }
  }
  return hasThoughts ? { from, items } : undefined;
}

/**
 * Returns the blocks of a reply. Thoughts for this model are inserted at their places, except those
 * at the end, which the API refuses. Blocks without a place follow the rest.
 */
export function createAssistantBlocks(
  message: AssistantPromptMessage,
  replay: Replay,
): ContentBlockParam[] {
  const calls = createCalls(message);
  const items = getReplayedItems(message, replay);
  if (items === undefined) return [...toTextBlocks(message.text), ...calls];
  const blocks: ContentBlockParam[] = [];
  let at = 0;
  let called = 0;
  for (const item of items) {
    if (isThought(item)) blocks.push(item);
    else if (typeof item['characters'] === 'number') {
      const end = at + item['characters'];
      blocks.push(...toTextBlocks(message.text.slice(at, end)));
      at = end;
    } else if (item['call'] === called) {
      blocks.push(...calls.slice(called, called + 1));
      called += 1;
    }
  }
  const rest = [...toTextBlocks(message.text.slice(at)), ...calls.slice(called)];
  const all = [...blocks, ...rest];
  return all.slice(0, all.findLastIndex((block) => !isThought(block)) + 1);
}

/**
 * Returns a text as blocks; none without a visible character, because the API refuses such texts.
 */
export function toTextBlocks(text: string): TextBlockParam[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function createCalls({ calls = [] }: AssistantPromptMessage): ContentBlockParam[] {
  return calls.map((call) => {
    const input = parseJson(call.arguments);
    // Only objects are accepted; the model sees what it wrote instead.
    const shown = isObject(input) ? input : { invalid_arguments: call.arguments };
    return { type: 'tool_use', id: call.id, name: call.name, input: shown };
  });
}

type Thought = ThinkingBlockParam | RedactedThinkingBlockParam;

function isThought(item: unknown): item is Thought {
  if (!isObject(item)) return false;
  return item['type'] === 'thinking' || item['type'] === 'redacted_thinking';
}
