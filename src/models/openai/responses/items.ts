import { isObject, type JsonObject } from '../../../core/json.js';
import type { ModelReply } from '../../model.js';
import {
  getReplayedItems,
  type AssistantPromptMessage,
  type Replay,
} from '../../wire/replayed-items.js';
import { pickOpaque } from '../../wire/opaque-fields.js';
import type { ScreenCalls } from './computer.js';

/** Separates the texts of two messages in one reply. */
export const BETWEEN_MESSAGES = '\n\n';

/**
 * Extracts the items of a reply that go back with later requests, in order. Texts and calls are in
 * the transcript and are not stored twice: a message keeps its number of characters, a call its
 * place. Returns undefined if the reply has only texts and calls.
 */
export function extractItems(output: readonly JsonObject[], from: string): ModelReply['provider'] {
  const replayable = output.filter(isReplayable);
  if (replayable.every(isPlain)) return undefined;
  let call = 0;
  const items = replayable.map((item): JsonObject => {
    if (item['type'] === 'message') {
      const { content, ...rest } = item;
      return { ...rest, characters: joinMessageText(content).length };
    }
    if (item['type'] === 'computer_call') {
      const { call_id: _, ...rest } = item;
      return { ...rest, call: call++ };
    }
    if (item['type'] !== 'function_call') return item;
    const { call_id: _id, name: _name, arguments: _arguments, ...rest } = item;
    return { ...rest, call: call++ };
  });
  return { from, items };
}

/** The fields of texts and calls that perdure writes itself, or that nothing refers to. */
const KNOWN: Readonly<Record<string, ReadonlySet<string>>> = {
  function_call: new Set(['type', 'id', 'call_id', 'name', 'arguments', 'status']),
  message: new Set(['type', 'id', 'role', 'status', 'content']),
};

/** Whether the transcript holds all of an item. */
function isPlain(item: JsonObject): boolean {
  const known = typeof item['type'] === 'string' ? KNOWN[item['type']] : undefined;
  return known !== undefined && pickOpaque(item, known) === undefined;
}

/**
 * Whether an item can be replayed. Reasoning that is neither in the item nor encrypted would have
 * to be stored at the provider.
 */
function isReplayable({ type, encrypted_content: encrypted, content }: JsonObject): boolean {
  if (type !== 'reasoning') return true;
  return (typeof encrypted === 'string' && encrypted !== '') || Array.isArray(content);
}

export function joinMessageText(content: unknown): string {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  return parts
    .map((part) => {
      if (typeof part === 'string') return part;
      return isObject(part) && typeof part['text'] === 'string' ? part['text'] : '';
    })
    .join('');
}

/**
 * Writes an assistant message as items, including the provider's own if this model created them.
 */
export function createAssistantItems(
  message: AssistantPromptMessage,
  { screens, replay }: { readonly screens: ScreenCalls; readonly replay: Replay },
): readonly JsonObject[] {
  const items = getReplayedItems(message, replay);
  if (items !== undefined) {
    return dropTrailingReasoning(restoreItems(message, { items, screens }));
  }
  return [...createMessageItem(message.text), ...(message.calls ?? []).map(createCallItem)];
}

/** Inserts the transcript's texts and calls into the provider's items. */
function restoreItems(
  { text, calls = [] }: AssistantPromptMessage,
  { items, screens }: { readonly items: readonly JsonObject[]; readonly screens: ScreenCalls },
): readonly JsonObject[] {
  const texts = splitText(text, items.filter(isMessage).map(getCharacters));
  const places = new Set(items.map(({ call }) => call));
  let at = 0;
  const restored = items.flatMap((item): readonly JsonObject[] => {
    if (isMessage(item)) {
      const part = texts[at++] ?? '';
      if (part === '') return [];
      const { characters: _, ...rest } = item;
      return [{ ...rest, content: [{ type: 'output_text', text: part, annotations: [] }] }];
    }
    if (item['type'] !== 'function_call' && item['type'] !== 'computer_call') return [item];
    const { call: index, ...rest } = item;
    const call = typeof index === 'number' ? calls[index] : undefined;
    if (item['type'] === 'computer_call' && call !== undefined) {
      return [screens.has(call.id) ? { ...rest, call_id: call.id } : createCallItem(call)];
    }
    return call === undefined ? [] : [{ ...rest, ...createCallItem(call) }];
  });
  const others = calls.filter((_, index) => !places.has(index));
  const message = texts.length === 0 ? createMessageItem(text) : [];
  return [...message, ...restored, ...others.map(createCallItem)];
}

function createMessageItem(text: string): readonly JsonObject[] {
  return text === '' ? [] : [{ type: 'message', role: 'assistant', content: text }];
}

function createCallItem(call: NonNullable<AssistantPromptMessage['calls']>[number]): JsonObject {
  return {
    type: 'function_call',
    call_id: call.id,
    name: call.name,
    arguments: call.arguments,
  };
}

function isMessage({ type }: JsonObject): boolean {
  return type === 'message';
}

function getCharacters({ characters }: JsonObject): number {
  return typeof characters === 'number' ? characters : 0;
}

/**
 * Splits a text at the lengths of its messages. A text of another length goes to the first message.
 */
function splitText(text: string, lengths: readonly number[]): readonly string[] {
  const nonEmpty = lengths.filter((length) => length > 0);
  const between = BETWEEN_MESSAGES.length * Math.max(0, nonEmpty.length - 1);
  const whole = nonEmpty.reduce((sum, length) => sum + length, between);
  if (whole !== text.length) return lengths.map((_, index) => (index === 0 ? text : ''));
  let from = 0;
  return lengths.map((length) => {
    const part = text.slice(from, from + length);
    if (length > 0) from += length + BETWEEN_MESSAGES.length;
    return part;
  });
}

/** Drops trailing reasoning, because the API refuses reasoning that no message or call follows. */
function dropTrailingReasoning(items: readonly JsonObject[]): readonly JsonObject[] {
  const last = items.findLastIndex(({ type }) => type !== 'reasoning');
  return items.slice(0, last + 1);
}
