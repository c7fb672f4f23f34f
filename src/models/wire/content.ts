import { isObject } from '../../core/json.js';

/**
 * Returns the text of content that is a text or a list of parts; parts of other kinds are skipped.
 */
export function joinText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part: unknown) => {
      if (typeof part === 'string') return part;
      return isObject(part) && typeof part['text'] === 'string' ? part['text'] : '';
    })
    .join('');
}

/**
 * Replaces arguments that are nested too deeply to serialize. They are invalid, but the reply is
 * paid for.
 */
const TOO_DEEP = '[nested too deeply]';

/**
 * Returns a call's arguments as JSON text; servers send them as a string, as an object, or not at
 * all.
 */
export function toArgumentsText(value: unknown): string {
  if (value === undefined || value === null) return '{}';
  if (typeof value === 'string') return isNothing(value) ? '{}' : value;
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return TOO_DEEP;
    throw error;
  }
}

export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isNothing(text: string): boolean {
  return text.length <= 16 && ['', 'null'].includes(text.trim());
}

/** Sent for a tool's empty result, because some servers refuse empty texts. */
export const EMPTY_RESULT = '(no output)';
/** Sent for a message of a person without text or attachments. */
export const EMPTY_MESSAGE = '(empty message)';
