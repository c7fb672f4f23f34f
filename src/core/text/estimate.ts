/** Tokens of a message in addition to its text: role, separators, and ids. */
const TOKENS_PER_TEXT = 4;
const ASCII_PER_TOKEN = 3;

/**
 * Estimated tokens of an attachment: more than providers count for a typical image or one or two
 * pages of a file.
 */
export const TOKENS_PER_ATTACHMENT = 1_500;

/**
 * Estimates the tokens of a text without a tokenizer: one per three ASCII characters, and one per
 * other character. The estimate is high, so a call rarely exceeds its reservation.
 */
export function estimateTokens(text: string): number {
  // oxlint-disable-next-line no-control-regex -- the class is all of ASCII
  const other = text.length - text.replaceAll(/[^\u0000-\u007f]/g, '').length;
  return TOKENS_PER_TEXT + other + Math.ceil((text.length - other) / ASCII_PER_TOKEN);
}
