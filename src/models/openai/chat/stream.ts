import { isObject } from '../../../core/json.js';
import { ignoreDeltas, type EmitDelta } from '../../deltas.js';
import type { StreamAssembly } from '../../wire/api.js';
import { joinText, toArgumentsText } from '../../wire/content.js';
import { MAX_LOGPROBS } from '../logprobs.js';
import { mergeDelta, pickOpaque } from '../../wire/opaque-fields.js';
import { createReplyMeter, type ReplyMeter } from '../../wire/reply-limits.js';
import { findUsage } from '../../wire/usage.js';
import { MESSAGE_FIELDS } from './provider-fields.js';
import { assembleCalls } from './stream-calls.js';

/** One choice of a streamed answer so far. */
interface OpenChoice {
  content: string;
  reasoning: string;
  refusal: string;
  reason: unknown;
  /** The fields that perdure does not know. */
  opaque: unknown;
  readonly logprobs: unknown[];
}

/** Maximum choices of one answer; perdure asks for one, and some servers split it. */
const MAX_CHOICES = 16;

/** The fields of a delta that are read one by one. */
const DELTA_FIELDS: ReadonlySet<string> = new Set([...MESSAGE_FIELDS, 'reasoning_content']);

/** Assembles the chunks of a stream into the completion of an unstreamed reply. */
export function assembleCompletion(emit: EmitDelta = ignoreDeltas): StreamAssembly {
  const meter = createReplyMeter();
  const calls = assembleCalls(emit, meter);
  const choices = new Map<number, OpenChoice>();
  let usage: unknown;
  /** The choice whose text is shown. */
  let shown: OpenChoice | undefined;

  const getChoice = (index: number): OpenChoice | undefined => {
    const known = choices.get(index);
    if (known !== undefined || choices.size >= MAX_CHOICES) return known;
    const choice = openChoice();
    choices.set(index, choice);
    return choice;
  };

  const addToChoice = (value: Record<string, unknown>): void => {
    const index = typeof value['index'] === 'number' ? value['index'] : 0;
    const choice = getChoice(index);
    if (choice === undefined) return;
    const { thought, text, parts } = growChoice(choice, { value, meter });
    if (thought !== '') emit({ kind: 'reasoning', text: thought });
    if (text !== '') {
      shown ??= choice;
      if (shown === choice) emit({ kind: 'text', text });
    }
    for (const part of parts) calls.add(part, index);
  };

  const isAnyText = (): boolean =>
    [...choices.values()].some(({ content, refusal }) => content !== '' || refusal !== '');

  return {
    add(chunk) {
      meter.event();
      if (!isObject(chunk)) return;
      usage = findUsage(chunk) ?? usage;
      const values: readonly unknown[] = Array.isArray(chunk['choices']) ? chunk['choices'] : [];
      for (const value of values) if (isObject(value)) addToChoice(value);
    },
    // A choice without its reason may hold half a call.
    isFinished: () =>
      choices.size > 0 && [...choices.values()].every(({ reason }) => reason !== null),
    hasContent: () => isAnyText() || calls.hasCalls(),
    isThinking: () => !isAnyText() && !calls.hasCalls(),
    answer: () => ({
      choices: [...choices].map(([index, choice]) => ({
        index,
        finish_reason: choice.reason,
        ...(choice.logprobs.length > 0 && { logprobs: { content: choice.logprobs } }),
        message: {
          ...(isObject(choice.opaque) && choice.opaque),
          content: choice.content,
          refusal: choice.refusal,
          reasoning_content: choice.reasoning,
          tool_calls: calls.list(index),
        },
      })),
      usage,
    }),
  };
}

function openChoice(): OpenChoice {
  const texts = { content: '', reasoning: '', refusal: '' };
  return { ...texts, reason: null, opaque: undefined, logprobs: [] };
}

/** Adds a chunk to its choice. Returns the new thought and text, and the parts of calls. */
function growChoice(
  choice: OpenChoice,
  { value, meter }: { readonly value: Record<string, unknown>; readonly meter: ReplyMeter },
) {
  if (isReason(value['finish_reason'])) choice.reason = value['finish_reason'];
  const tokens = isObject(value['logprobs']) ? value['logprobs']['content'] : undefined;
  if (Array.isArray(tokens) && choice.logprobs.length < MAX_LOGPROBS) {
    choice.logprobs.push(...tokens.slice(0, MAX_LOGPROBS));
  }
  const delta = isObject(value['delta']) ? value['delta'] : {};
  const reasoning = joinText(delta['reasoning_content']);
  const content = joinText(delta['content']);
  const refusal = joinText(delta['refusal']);
  const opaque = pickOpaque(delta, DELTA_FIELDS);
  meter.text(reasoning, content, refusal, opaque ? toArgumentsText(opaque) : '');
  choice.reasoning += reasoning;
  choice.content += content;
  choice.refusal += refusal;
  choice.opaque = mergeDelta(choice.opaque, opaque);
  const thought = reasoning || joinText(delta['reasoning']);
  return { thought, text: content + refusal, parts: listParts(delta) };
}

/**
 * Whether a value is a finish reason. While the answer continues, it is null, missing, empty, or,
 * on some servers, the word null.
 */
function isReason(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 'null';
}

/**
 * Returns the parts of calls in a delta. TGI sends a single call instead of a list; old servers send
 * a `function_call`, of which a message has one.
 */
function listParts({ tool_calls: calls, function_call: old }: Record<string, unknown>) {
  const parts: readonly unknown[] = Array.isArray(calls) ? calls : [calls];
  const isOld = isObject(old) && !parts.some(isObject);
  return isOld ? [{ index: 0, function: old }] : parts;
}
