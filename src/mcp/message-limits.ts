/** Maximum bytes of one message. The largest stored attachment, of 20 MB, has 27 MB as base64. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** The problem with a longer message. */
export const TOO_LONG = `it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`;
/** Maximum brackets and commas in one message; each may become a value of 50 bytes or more. */
const MAX_STRUCTURE = 2_000_000;
const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b];

/** Returns the problem with a message's text before it is parsed, or null if there is none. */
export function mcpTextProblem(text: Uint8Array): string | null {
  if (text.length > MAX_MESSAGE_BYTES) return TOO_LONG;
  if (text.length <= MAX_STRUCTURE) return null;
  let structure = 0;
  for (const byte of text) {
    if (byte === COMMA || byte === BRACKET || byte === BRACE) structure += 1;
  }
  return structure > MAX_STRUCTURE
    ? `it sent a message of more than ${MAX_STRUCTURE} values`
    : null;
}
