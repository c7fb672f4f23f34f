/** Every message costs a few tokens beside its text: role, separators, ids. */
const TOKENS_PER_TEXT = 4;
const ASCII_PER_TOKEN = 3;

/** More than what providers count for an image of usual size, or for a page or two of a file. */
export const TOKENS_PER_ATTACHMENT = 1_500;

/**
 * Tokens of a text without a tokenizer, on the high side, so that what is reserved before a call is
 * rarely less than what it costs: three ASCII characters to a token, any other character one.
 */
export function estimateTokens(text: string): number {
  // oxlint-disable-next-line no-control-regex -- all of ASCII is meant
  const other = text.length - text.replaceAll(/[^\u0000-\u007f]/g, '').length;
  return TOKENS_PER_TEXT + other + Math.ceil((text.length - other) / ASCII_PER_TOKEN);
}
