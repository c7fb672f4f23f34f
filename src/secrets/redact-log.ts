import { redactJson } from './redact-json.js';
import { redactMessage } from './redact.js';

/** How many causes of an error are followed. */
const MAX_CAUSES = 8;

/**
 * Returns the fields of a log entry without secrets. Errors remain errors, with message, stack, and
 * causes redacted.
 */
export function redactFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, redactField(value)]),
  );
}

function redactField(value: unknown): unknown {
  if (typeof value === 'string') return redactMessage(value);
  if (value instanceof Error) return redactError(value);
  return typeof value === 'object' && value !== null ? redactJson(value) : value;
}

/** Returns a copy of an error without secrets in its name, message, stack, and causes. */
function redactError(error: Error, depth = 0): Error {
  const { cause } = error;
  const isFollowed = cause instanceof Error && depth < MAX_CAUSES;
  const copy = new Error(
    redactMessage(error.message),
    isFollowed ? { cause: redactError(cause, depth + 1) } : undefined,
  );
  copy.name = redactMessage(error.name);
  copy.stack = redactMessage(error.stack ?? '');
  return copy;
}
