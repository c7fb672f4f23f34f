import { redactMessage } from '../secrets/redact.js';

/** The longest piece of a provider's text that enters a message. */
const SAMPLE_CHARACTERS = 300;

/** One printable line of at most `SAMPLE_CHARACTERS` characters; redacted before it is cut, so that no cut key slips through. */
export function sample(text: string): string {
  const line = redactMessage(text)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return line.length <= SAMPLE_CHARACTERS ? line : `${line.slice(0, SAMPLE_CHARACTERS - 1)}…`;
}
