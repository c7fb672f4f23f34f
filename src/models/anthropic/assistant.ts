import type { ContentBlockParam, TextBlockParam } from '@anthropic-ai/sdk/resources/messages';
import { type JsonObject, isObject, parseJson, quoteLargeIntegers } from '../../core/text/json.js';
import { type ModelCapabilities, getCapabilities } from '../known-models.js';
import type { ModelReply } from '../model.js';
import {
  type AssistantPromptMessage,
  type Replay,
  getReplayedItems,
  pickOpaque,
} from '../wire/opaque-fields.js';

/** The fields of texts and calls that the transcript holds, or that nothing refers to. */
const TEXT_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'text',
  'citations',
  'characters',
  'call',
]);
const CALL_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'id',
  'name',
  'input',
  'caller',
  'characters',
  'call',
]);

/**
 * Extracts what goes back to the provider unchanged: thoughts, blocks of unknown types, and unknown
 * fields, with their places among the texts and calls: `characters` of the text or one `call` mark
 * their positions in the reply. Returns undefined for a reply of plain texts and calls.
 */
export function extractOpaqueBlocks(
  content: readonly unknown[],
  from: string,
): ModelReply['provider'] {
  const items: JsonObject[] = [];
  let calls = 0;
  let hasOpaque = false;
  for (const block of content) {
    if (!isObject(block)) continue;
    const isCall = block['type'] === 'tool_use';
    if (isCall || block['type'] === 'text') {
      const opaque = pickOpaque(block, isCall ? CALL_FIELDS : TEXT_FIELDS);
      hasOpaque ||= opaque !== undefined;
      const characters = typeof block['text'] === 'string' ? block['text'].length : 0;
      items.push({ ...opaque, ...(isCall ? { call: calls++ } : { characters }) });
    } else if (typeof block['type'] === 'string') {
      hasOpaque = true;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
      items.push(block as JsonObject);
    }
  }
  return hasOpaque ? { from, items } : undefined;
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
    if (typeof item['type'] === 'string') blocks.push(toBlock(item));
    else if (typeof item['characters'] === 'number') {
      const end = at + item['characters'];
      const opaque = pickOpaque(item, TEXT_FIELDS);
      blocks.push(
        ...toTextBlocks(message.text.slice(at, end)).map((one) => ({ ...opaque, ...one })),
      );
      at = end;
    } else if (item['call'] === called) {
      const opaque = pickOpaque(item, CALL_FIELDS);
      blocks.push(...calls.slice(called, called + 1).map((one) => ({ ...opaque, ...one })));
      called += 1;
    }
  }
  const rest = [...toTextBlocks(message.text.slice(at)), ...calls.slice(called)];
  const all = [...blocks, ...rest];
  return all.slice(0, all.findLastIndex((block) => !isThought(block)) + 1);
}

/** Returns a block of the provider as it came; the SDK's types cannot know all of them. */
function toBlock(item: JsonObject): ContentBlockParam {
  const block: unknown = item;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the provider sent it as a block
  return block as ContentBlockParam;
}

/**
 * Returns a text as blocks; none without a visible character, because the API refuses such texts.
 */
export function toTextBlocks(text: string): TextBlockParam[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function createCalls({ calls = [] }: AssistantPromptMessage): ContentBlockParam[] {
  return calls.map((call) => {
    const input = parseJson(quoteLargeIntegers(call.arguments));
    // Only objects are accepted; the model sees what it wrote instead.
    const shown = isObject(input) ? input : { invalid_arguments: call.arguments };
    return { type: 'tool_use', id: call.id, name: call.name, input: shown };
  });
}

function isThought({ type }: ContentBlockParam): boolean {
  return type === 'thinking' || type === 'redacted_thinking';
}

/**
 * The capabilities of Anthropic's own API, unlike servers that offer Claude through OpenAI's API.
 */
const OWN: Partial<ModelCapabilities> = {
  // The API version of the SDK (2026-10-21) has neither `temperature` nor `top_p`.
  temperature: false,
  roleOrder: 'alternating',
  responseFormat: 'json_schema',
  logprobs: false,
  maxTokensParameter: 'max_tokens',
  nativeTools: false,
  computerUse: false,
};

/** Models before Claude 4.5 do not enforce a JSON schema. */
const WITHOUT_SCHEMA = /^claude-(?:instant|[123]|(?:opus|sonnet)-4(?:-[01])?(?:-\d{8})?$)/;

/** Models that refuse `tool_choice: 'any'`, because they may always think before a call. */
const WITHOUT_FORCED_TOOLS = /^claude-(?:fable|mythos|[a-z]+-5-5)/;

/**
 * Returns a model's capabilities at Anthropic's API: `overrides` field by field, then known values.
 */
export function getAnthropicCapabilities(
  model: string,
  overrides: Partial<ModelCapabilities> = {},
): ModelCapabilities {
  return getCapabilities(model, {
    ...OWN,
    ...(WITHOUT_SCHEMA.test(model) && { responseFormat: 'none' }),
    ...(WITHOUT_FORCED_TOOLS.test(model) && { requiredToolChoice: false }),
    ...overrides,
  });
}

/**
 * Maximum tokens of a reply for models that accept less than `DEFAULT_OUTPUT`, by the beginning of
 * the name.
 */
const SMALLER_OUTPUTS: readonly (readonly [RegExp, number])[] = [
  [/^claude-3-(?:haiku|opus|sonnet)/, 4_096],
  [/^claude-3-5/, 8_192],
];

/** Every model since Claude 3.7 accepts it. The API has no default. */
const DEFAULT_OUTPUT = 32_000;

/** Returns the `max_tokens` of a request without `maxOutputTokens`. */
export function getDefaultOutput(model: string): number {
  return SMALLER_OUTPUTS.find(([pattern]) => pattern.test(model))?.[1] ?? DEFAULT_OUTPUT;
}
