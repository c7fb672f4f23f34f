import { computerHandler } from '../../../core/definition/native-tools.js';
import { isObject, type Json, type JsonObject } from '../../../core/json.js';
import { screenshotNote } from '../../../core/text/screenshot-text.js';
import type { Attachment, PromptMessage, SafetyCheck } from '../../../core/transcript/messages.js';
import type { ModelRequest, ReplyCall } from '../../model.js';
import { createPart, type AttachedData } from '../../wire/attachment-parts.js';
import { getReplayedItems, type Replay } from '../../wire/replayed-items.js';

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
export type ScreenCalls = ReadonlyMap<string, JsonObject>;

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
