import { sha256Hex } from '../../core/digest.js';
import type {
  BlobRef,
  ParsedArguments,
  RequestedCall,
  SafetyCheck,
} from '../../core/transcript/messages.js';
import { wellFormed } from '../../core/text/whole-text.js';
import type { ReplyCall } from '../../models/model.js';
import { redactJsonText } from '../../secrets/redact-json.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import type { ReadCall } from './read-call.js';

/**
 * Maximum bytes of inline arguments. Larger ones are offloaded, and the model sees a placeholder.
 */
const INLINE_ARGUMENT_BYTES = 64 * 1024;
/** Maximum bytes of all inline arguments of one message, so no history event exceeds 256 KiB. */
const INLINE_MESSAGE_BYTES = 128 * 1024;
/** The limit for the problems of all calls of one message. */
const PROBLEM_CHARACTERS = 24_000;
/** Minimum characters kept of each problem's message, even above the limit for all of them. */
const MIN_PROBLEM_CHARACTERS = 120;

/**
 * Returns the calls of a message as the history records them, with large arguments in the blob
 * store.
 */
export async function recordCalls(
  read: readonly ReadCall[],
  blobs: BlobStore,
): Promise<readonly RequestedCall[]> {
  const calls: RequestedCall[] = [];
  let argumentRoom = INLINE_MESSAGE_BYTES;
  let problemRoom = PROBLEM_CHARACTERS;
  for (const { canonical, parsedCanonical, ...call } of read) {
    const length = Math.max(problemRoom, MIN_PROBLEM_CHARACTERS);
    const problem = call.problem && {
      ...call.problem,
      message: call.problem.message.slice(0, length),
    };
    problemRoom -= problem?.message.length ?? 0;
    const recorded = await recordArguments(canonical, { room: argumentRoom, blobs });
    argumentRoom -= Buffer.byteLength(recorded.arguments);
    const parsed =
      parsedCanonical === undefined
        ? undefined
        : await recordArguments(parsedCanonical, { room: argumentRoom, blobs });
    argumentRoom -= Buffer.byteLength(parsed?.arguments ?? '');
    calls.push({
      ...call,
      ...(problem && { problem }),
      ...(parsed?.problem && { problem: parsed.problem }),
      ...recorded,
      ...(parsed && { parsed: parsedForm(parsedCanonical ?? '', parsed) }),
    });
  }
  return calls;
}

/**
 * Returns what the tool of a call gets as the history records it; undefined if that is what was
 * written. Rejects if it is large and cannot be stored.
 */
export async function recordParsed(
  { written, parsed }: { readonly written: string; readonly parsed: string },
  blobs: BlobStore,
): Promise<ParsedArguments | undefined> {
  if (parsed === written) return undefined;
  if (Buffer.byteLength(parsed) <= INLINE_ARGUMENT_BYTES) {
    return parsedForm(parsed, { arguments: redactJsonText(parsed) });
  }
  const blob = await blobs.put(redactJsonText(parsed));
  return parsedForm(parsed, { arguments: standIn(blob), blob });
}

/** Returns the record of what a tool gets. `canonical`: the whole of it. */
export function parsedForm(
  canonical: string,
  { arguments: given, blob }: Pick<RequestedCall, 'arguments' | 'blob'> = { arguments: canonical },
): ParsedArguments {
  return { arguments: given, digest: sha256Hex(canonical), ...(blob && { blob }) };
}

function standIn(blob: BlobRef): string {
  return JSON.stringify({ omitted: `${blob.bytes} bytes, stored as ${blob.sha256}` });
}

/**
 * Offloads arguments that are too large. If the store is down, the call has a problem and is not
 * made.
 */
async function recordArguments(
  canonical: string,
  { room, blobs }: { room: number; blobs: BlobStore },
): Promise<Pick<RequestedCall, 'arguments' | 'blob' | 'problem'>> {
  const bytes = Buffer.byteLength(canonical);
  if (bytes <= Math.min(INLINE_ARGUMENT_BYTES, room)) return { arguments: canonical };
  try {
    const blob = await blobs.put(canonical);
    return { arguments: standIn(blob), blob };
  } catch (error) {
    const message = `not executed: its ${bytes} bytes of arguments could not be stored: ${normalizeError(error).message}`;
    const short = JSON.stringify({ omitted: `${bytes} bytes` });
    return { arguments: short, problem: { type: 'truncated', message } };
  }
}

/**
 * Limits for the safety checks of one call. They are for people; the provider gets its original
 * text back.
 */
const MAX_CHECKS = 10;
const WORD_CHARACTERS = 200;
const MESSAGE_CHARACTERS = 600;

/**
 * Returns a provider's safety checks, shortened for people. A call with checks never loses all of
 * them.
 */
export function recordSafety({ safety = [] }: ReplyCall): { safety?: readonly SafetyCheck[] } {
  if (safety.length === 0) return {};
  const shown = safety.slice(0, MAX_CHECKS).map(({ id, code, message }) => ({
    id: cut(id, WORD_CHARACTERS),
    ...(code !== undefined && { code: cut(code, WORD_CHARACTERS) }),
    ...(message !== undefined && { message: cut(message, MESSAGE_CHARACTERS) }),
  }));
  const left = safety.length - shown.length;
  const more = { id: 'more', message: `and ${left} more checks` };
  return { safety: left > 0 ? [...shown, more] : shown };
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? wellFormed(text) : `${wellFormed(text.slice(0, characters))}…`;
}
