import { keyOfDocument } from '../../core/text/document-text.js';
import { isObject } from '../../core/json.js';
import type { JsonObject } from '../../core/json.js';
import type { PromptMessage } from '../../core/transcript/messages.js';
import type { DemoResult, SeenCall } from './replay.js';

/** What the demo model takes from a transcript. */
export interface DemoConversation {
  /** The last message that a person wrote. */
  readonly question: string;
  /** The calls made since, in order. */
  readonly seen: readonly SeenCall[];
}

export function readConversation(messages: readonly PromptMessage[]): DemoConversation {
  const asked = messages.findLastIndex(
    ({ text, ...message }) =>
      message.role === 'user' && message.origin !== 'perdure' && keyOfDocument(text) === null,
  );
  const since = messages.slice(asked + 1);
  const texts = new Map(
    since.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message.text] as const] : [],
    ),
  );
  const seen = since.flatMap((message) =>
    message.role === 'assistant'
      ? (message.calls ?? []).flatMap((call) => {
          const text = texts.get(call.id);
          if (text === undefined) return [];
          return [{ tool: call.name, input: readInput(call.arguments), ...readResult(text) }];
        })
      : [],
  );
  return { question: messages[asked]?.text ?? '', seen };
}

/** The engine reports what did not work as `{"error":{"type","message"}}`. */
function readResult(text: string): { readonly result: DemoResult; readonly isSkipped: boolean } {
  const value = text.startsWith('{"error":') ? parse(text) : undefined;
  const error = isObject(value) ? value['error'] : undefined;
  if (isObject(error) && typeof error['message'] === 'string') {
    const result = { ok: false, text: error['message'] };
    return { result, isSkipped: error['type'] === 'not_executed' };
  }
  return { result: { ok: true, text: withoutNote(text) }, isSkipped: false };
}

/** An answer from the record begins with a line that says so. */
function withoutNote(text: string): string {
  return text.replace(/^\[(?:already done in this turn|identical to) [^\n]*\]\n/, '');
}

function readInput(text: string): JsonObject {
  const value = parse(text);
  return isJsonObject(value) ? value : {};
}

function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
