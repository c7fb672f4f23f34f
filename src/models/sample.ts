import { redactMessage } from '../secrets/redact.js';

const SAMPLE_CHARACTERS = 300;

/**
 * Returns a provider's text as one printable line of at most 300 characters, for a message. It is
 * redacted before it is cut, so no part of a key remains.
 */
export function sample(text: string): string {
  const line = redactMessage(text)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return line.length <= SAMPLE_CHARACTERS ? line : `${line.slice(0, SAMPLE_CHARACTERS - 1)}…`;
}
