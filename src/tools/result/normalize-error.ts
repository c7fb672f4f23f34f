import { wellFormed } from '../../core/text/whole-text.js';
import { types } from 'node:util';
import { toPlain } from './plain.js';
import { redact, redactMessage } from '../../secrets/redact.js';
import { headBytes } from '../utf8.js';

const MAX_MESSAGE_BYTES = 4 * 1024;
const MAX_TYPE_LENGTH = 100;
const MAX_CAUSES = 3;

/** An error as data, for the model and for reports. */
export interface NormalizedError {
  /** The error's name, such as `ToolError`; `Error` if the thrown value is not an error. */
  readonly type: string;
  /** At most 4 KiB of UTF-8, secrets redacted, causes appended. */
  readonly message: string;
}

/** Converts any thrown value into data. Never throws. */
export function normalizeError(thrown: unknown): NormalizedError {
  const { type, message } = read(thrown);
  const text = wellFormed(redactMessage(message));
  const omitted = Buffer.byteLength(text) - MAX_MESSAGE_BYTES;
  if (omitted <= 0) return { type, message: text };
  const note = `… [cut, ${Buffer.byteLength(text)} bytes in all]`;
  return {
    type,
    message: headBytes(text, MAX_MESSAGE_BYTES - Buffer.byteLength(note)) + note,
  };
}

function read(thrown: unknown): NormalizedError {
  try {
    if (isError(thrown)) {
      const name = typeof thrown.name === 'string' ? thrown.name : '';
      return { type: redact(name).slice(0, MAX_TYPE_LENGTH) || 'Error', message: messages(thrown) };
    }
    if (thrown === undefined || thrown === null || thrown === '') {
      return { type: 'Error', message: `it threw ${thrown === '' ? 'an empty text' : thrown}` };
    }
    const { message } = thrown as { message?: unknown };
    if (typeof message === 'string' && message !== '') return { type: 'Error', message };
    return { type: 'Error', message: asText(thrown) };
  } catch {
    return { type: 'Error', message: 'it threw an object that cannot be read' };
  }
}

/**
 * Joins the messages of an error and its causes: "fetch failed" alone does not explain a failure.
 */
function messages(error: Error): string {
  const found: string[] = [];
  let current: unknown = error;
  for (
    let depth = 0;
    depth <= MAX_CAUSES && current !== undefined && current !== null;
    depth += 1
  ) {
    const text = isError(current) ? ownMessage(current) : asText(current);
    if (!found.some((earlier) => earlier.includes(text))) found.push(text);
    current = isError(current) ? (current.cause ?? firstOfMany(current)) : undefined;
  }
  return found.filter((text) => text !== '').join(': ') || error.name || 'Error';
}

function ownMessage(error: Error): string {
  return asText(error.message);
}

function asText(value: unknown): string {
  const plain = toPlain(value);
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}

function firstOfMany(error: Error): unknown {
  return error instanceof AggregateError ? (error.errors[0] as unknown) : undefined;
}

function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}
