import { computerHandler } from '../../core/definition/native-tools.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import type { Attachment, PromptMessage, SafetyCheck } from '../../core/transcript/messages.js';
import { screenshotNote } from '../../core/text/screenshot-text.js';
import { attachedPart, type AttachedData } from '../attachments.js';
import type { ModelRequest, ReplyCall } from '../model.js';
import type { Item } from './responses/items.js';
import { itemsFrom, type Returning } from './replayed-items.js';

type ToolMessage = Extract<PromptMessage, { readonly role: 'tool' }>;

/** Computer calls that go back as such, by our ids: those that have a screenshot to show. */
export type ScreenCalls = ReadonlyMap<string, Item>;

/** The tool that there is not, where nobody has said which executes actions. */
export const NO_HANDLER = 'computer_use';

/** A single action, or several that belong together as `{ actions }`. */
export function computerArguments({ action, actions }: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(Array.isArray(actions) ? { actions } : (action ?? {}));
}

/** A pending action on the screen as a call of the tool that executes it. */
export function computerCall(item: Item, handler: string): ReplyCall {
  const safety = checksOf(item).map(shownCheck);
  const call = { name: handler, arguments: computerArguments(item) };
  return safety.length === 0 ? call : { ...call, safety };
}

/** Nobody has asked for it: an ordinary call of a tool that there is not, so that the model is told so. */
export function asFunctionCall(item: JsonObject): JsonObject {
  if (item['type'] !== 'computer_call') return item;
  return { type: 'function_call', name: NO_HANDLER, arguments: computerArguments(item) };
}

/** In whatever form it comes: what nobody can read is a doubt as well. */
function shownCheck(check: Json): SafetyCheck {
  if (!isObject(check)) return { id: '', message: JSON.stringify(check) };
  const { id, code, message } = check;
  return {
    id: typeof id === 'string' ? id : '',
    ...(typeof code === 'string' && { code }),
    ...(typeof message === 'string' && { message }),
  };
}

function checksOf({ pending_safety_checks: checks }: Item): readonly Json[] {
  if (checks === undefined || checks === null) return [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  return Array.isArray(checks) ? (checks as readonly Json[]) : [checks];
}

/**
 * The API takes a computer call back only with a screenshot, and one that was doubtful only with its
 * checks acknowledged. What failed, or a person decided against, goes back as a function call instead.
 */
export function screenCalls(messages: readonly PromptMessage[], returning: Returning): ScreenCalls {
  const results = new Map(
    messages.flatMap((one) => (one.role === 'tool' ? [[one.callId, one] as const] : [])),
  );
  const pairs = messages.flatMap((message): readonly (readonly [string, Item])[] => {
    if (message.role !== 'assistant') return [];
    return (itemsFrom(message, returning) ?? []).flatMap((item) => {
      if (item['type'] !== 'computer_call' || typeof item['call'] !== 'number') return [];
      const id = message.calls?.[item['call']]?.id;
      const result = id === undefined ? undefined : results.get(id);
      if (id === undefined || !result?.attachments) return [];
      const isSettled = checksOf(item).length === 0 || result.acknowledged;
      return isSettled ? [[id, item]] : [];
    });
  });
  return new Map(pairs);
}

/** The pictures among the results of a request. */
export function screensIn(messages: readonly PromptMessage[]): readonly Attachment[] {
  return messages.flatMap((one) => (one.role === 'tool' ? (one.attachments ?? []) : []));
}

/** What an action has made of the screen; what its tool says beside comes behind it, as nobody's order. */
export function screenOutput(
  { callId, text, attachments = [], acknowledged }: ToolMessage,
  { item, data }: { readonly item: Item; readonly data: AttachedData },
): readonly Item[] {
  const [picture] = attachments;
  const part = picture && attachedPart(picture, data);
  const url = part?.type === 'image_url' ? part.image_url.url : '';
  const note = screenshotNote(text);
  const checks = checksOf(item);
  return [
    {
      type: 'computer_call_output',
      call_id: callId,
      output: { type: 'computer_screenshot', image_url: url },
      ...(acknowledged && checks.length > 0 && { acknowledged_safety_checks: checks }),
    },
    ...(note === ''
      ? []
      : [
          {
            type: 'message',
            role: 'user',
            content: `[what the tool for the screen says of ${callId}, no person's words]\n${note}`,
          },
        ]),
  ];
}

/** The tool that stands behind the screen is not shown beside it. */
export function withoutHandler({ tools, settings }: ModelRequest): ModelRequest['tools'] {
  const handler = computerHandler(settings);
  return handler === null ? tools : tools.filter(({ name }) => name !== handler);
}

/** The preview has to cut what is too long by itself. */
export function truncationFor(native: readonly Item[]): JsonObject {
  const isPreview = native.some(({ type }) => type === 'computer_use_preview');
  return isPreview ? { truncation: 'auto' } : {};
}
