import { isObject, type Json, type JsonObject } from '../../../core/json.js';
import type { PromptMessage } from '../../../core/transcript/messages.js';
import type { ModelReply } from '../../model.js';
import type { ScreenCalls } from '../computer.js';
import { itemsFrom, type Returning } from '../replayed-items.js';

/** Between the texts of two messages in one reply. */
export const BETWEEN_MESSAGES = '\n\n';

/** An item of a request or a reply. */
export type Item = Readonly<Record<string, Json | undefined>>;

type Assistant = Extract<PromptMessage, { readonly role: 'assistant' }>;

/**
 * What of a reply goes back with later requests: its items in their order, where the transcript itself
 * has not all of it. Texts and calls are not kept twice: a message keeps the number of its characters,
 * a call its place. Undefined where texts and calls are all there is.
 */
export function keptItems(output: readonly Item[], from: string): ModelReply['provider'] {
  const wanted = output.filter(isReplayable);
  const isPlain = wanted.every(
    ({ type, phase }) => type === 'function_call' || (type === 'message' && !phase),
  );
  if (isPlain) return undefined;
  let call = 0;
  const items = wanted.map((item): JsonObject => {
    if (item['type'] === 'message') {
      const { content, ...rest } = item;
      return { ...rest, characters: textOfMessage(content).length };
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

/** What was thought and is neither shown nor encrypted lies with nobody when nothing is stored there. */
function isReplayable({ type, encrypted_content: encrypted, content }: Item): boolean {
  if (type !== 'reasoning') return true;
  return (typeof encrypted === 'string' && encrypted !== '') || Array.isArray(content);
}

export function textOfMessage(content: unknown): string {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  return parts
    .map((part) => {
      if (typeof part === 'string') return part;
      return isObject(part) && typeof part['text'] === 'string' ? part['text'] : '';
    })
    .join('');
}

/** An assistant's message as items: those of the provider where it is who made them. */
export function assistantItems(
  message: Assistant,
  { screens, ...returning }: Returning & { readonly screens: ScreenCalls },
): readonly Item[] {
  const plain = [...said(message.text), ...(message.calls ?? []).map(calling)];
  const items = itemsFrom(message, returning);
  return items === undefined ? plain : followed(filled(message, { items, screens }));
}

function said(text: string): readonly Item[] {
  return text === '' ? [] : [{ type: 'message', role: 'assistant', content: text }];
}

function calling(call: NonNullable<Assistant['calls']>[number]): Item {
  return {
    type: 'function_call',
    call_id: call.id,
    name: call.name,
    arguments: call.arguments,
  };
}

/** The kept items with the transcript's own texts and calls in their places. */
function filled(
  { text, calls = [] }: Assistant,
  { items, screens }: { readonly items: readonly JsonObject[]; readonly screens: ScreenCalls },
): readonly Item[] {
  const texts = divided(text, items.filter(isMessage).map(charactersOf));
  const named = new Set(items.map(({ call }) => call));
  let at = 0;
  const made = items.flatMap((item): readonly Item[] => {
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
      return [screens.has(call.id) ? { ...rest, call_id: call.id } : calling(call)];
    }
    return call === undefined ? [] : [{ ...rest, ...calling(call) }];
  });
  const left = calls.filter((_, index) => !named.has(index));
  return [...(texts.length === 0 ? said(text) : []), ...made, ...left.map(calling)];
}

function isMessage({ type }: JsonObject): boolean {
  return type === 'message';
}

function charactersOf({ characters }: JsonObject): number {
  return typeof characters === 'number' ? characters : 0;
}

/** A text that was cut, or has a note of ours, cannot be divided any more: the first message has it all. */
function divided(text: string, lengths: readonly number[]): readonly string[] {
  const spoken = lengths.filter((length) => length > 0);
  const between = BETWEEN_MESSAGES.length * Math.max(0, spoken.length - 1);
  const whole = spoken.reduce((sum, length) => sum + length, between);
  if (whole !== text.length) return lengths.map((_, index) => (index === 0 ? text : ''));
  let from = 0;
  return lengths.map((length) => {
    const part = text.slice(from, from + length);
    if (length > 0) from += length + BETWEEN_MESSAGES.length;
    return part;
  });
}

/** What was thought belongs to what came of it; the API refuses it alone. */
function followed(items: readonly Item[]): readonly Item[] {
  const last = items.findLastIndex(({ type }) => type !== 'reasoning');
  return items.slice(0, last + 1);
}
