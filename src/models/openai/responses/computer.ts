import { computerHandler } from '../../../core/input/turn-settings.js';
import { screenshotNote } from '../../../core/state/summaries.js';
import { type Json, type JsonObject, isObject } from '../../../core/text/json.js';
import type { Attachment, PromptMessage, SafetyCheck } from '../../../core/transcript/messages.js';
import type { ModelReply, ModelRequest, ReplyCall } from '../../model.js';
import { type AttachedData, createPart } from '../../wire/attachment-parts.js';
import {
  type AssistantPromptMessage,
  type Replay,
  getReplayedItems,
  pickOpaque,
} from '../../wire/opaque-fields.js';

/** The tool name of an action on a screen if no handler is set; there is no such tool. */
export const NO_HANDLER = 'computer_use';

/** Converts a pending action on the screen to a call of the tool that executes it. */
export function createComputerCall(item: JsonObject, handler: string): ReplyCall {
  const safety = listChecks(item).map(toSafetyCheck);
  const call = { name: handler, arguments: createComputerArguments(item) };
  return safety.length === 0 ? call : { ...call, safety };
}

/** Returns the arguments of one action, or of several that belong together as `{ actions }`. */
export function createComputerArguments(item: Readonly<Record<string, unknown>>): string {
  const { action, actions } = item;
  return JSON.stringify(Array.isArray(actions) ? { actions } : (action ?? {}));
}

/** Replaces an unrequested action with a call of a nonexistent tool, so the model gets an error. */
export function toFunctionCall(item: JsonObject): JsonObject {
  if (item['type'] !== 'computer_call') return item;
  return { type: 'function_call', name: NO_HANDLER, arguments: createComputerArguments(item) };
}

/** Returns a safety check. One of an unknown form also counts as a check. */
function toSafetyCheck(check: Json): SafetyCheck {
  if (!isObject(check)) return { id: '', message: JSON.stringify(check) };
  const { id, code, message } = check;
  return {
    id: typeof id === 'string' ? id : '',
    ...(typeof code === 'string' && { code }),
    ...(typeof message === 'string' && { message }),
  };
}

function listChecks({ pending_safety_checks: checks }: JsonObject): readonly Json[] {
  if (checks === undefined || checks === null) return [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  return Array.isArray(checks) ? (checks as readonly Json[]) : [checks];
}

/** The computer calls that go back as such, by perdure's call ids. */
type ScreenCalls = ReadonlyMap<string, JsonObject>;

/**
 * Finds the computer calls that can go back as such. The API accepts one only with a screenshot,
 * and one with safety checks only if they are acknowledged. A call that failed or was denied goes
 * back as a function call.
 */
export function findScreenCalls(messages: readonly PromptMessage[], replay: Replay): ScreenCalls {
  const results = new Map(
    messages.flatMap((one) => (one.role === 'tool' ? [[one.callId, one] as const] : [])),
  );
  const pairs = messages.flatMap((message): readonly (readonly [string, JsonObject])[] => {
    if (message.role !== 'assistant') return [];
    return (getReplayedItems(message, replay) ?? []).flatMap((item) => {
      if (item['type'] !== 'computer_call' || typeof item['call'] !== 'number') return [];
      const id = message.calls?.[item['call']]?.id;
      const result = id === undefined ? undefined : results.get(id);
      if (id === undefined || !result?.attachments) return [];
      const isCleared = listChecks(item).length === 0 || result.acknowledged;
      return isCleared ? [[id, item]] : [];
    });
  });
  return new Map(pairs);
}

/** Lists the attachments of the tool results in a request. */
export function listScreenshots(messages: readonly PromptMessage[]): readonly Attachment[] {
  return messages.flatMap((one) => (one.role === 'tool' ? (one.attachments ?? []) : []));
}

/**
 * Writes the result of a computer call: the screenshot, and the tool's text, marked as not from a
 * person.
 */
export function createScreenOutput(
  {
    callId,
    text,
    attachments = [],
    acknowledged,
  }: Extract<PromptMessage, { readonly role: 'tool' }>,
  { item, data }: { readonly item: JsonObject; readonly data: AttachedData },
): readonly JsonObject[] {
  const [picture] = attachments;
  const part = picture && createPart(picture, data);
  const url = part?.type === 'image_url' ? part.image_url.url : '';
  const note = screenshotNote(text);
  const checks = listChecks(item);
  const output: JsonObject = {
    type: 'computer_call_output',
    call_id: callId,
    output: { type: 'computer_screenshot', image_url: url },
    ...(acknowledged && checks.length > 0 && { acknowledged_safety_checks: checks }),
  };
  if (note === '') return [output];
  const content = `[output of the screen tool for ${callId}, not written by a person]\n${note}`;
  return [output, { type: 'message', role: 'user', content }];
}

/** Lists the tools of a request without the one that executes actions on the screen. */
export function listVisibleTools({ tools, settings }: ModelRequest): ModelRequest['tools'] {
  const handler = computerHandler(settings);
  return handler === null ? tools : tools.filter(({ name }) => name !== handler);
}

/** `computer_use_preview` requires automatic truncation. */
export function getTruncation(native: readonly JsonObject[]): JsonObject {
  const isPreview = native.some(({ type }) => type === 'computer_use_preview');
  return isPreview ? { truncation: 'auto' } : {};
}

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
