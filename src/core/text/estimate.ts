/** Tokens of a message beside its text: role, separators, ids. */
const TOKENS_PER_TEXT = 4;
const ASCII_PER_TOKEN = 3;

/** More than providers count for an image of usual size, or for one or two pages of a file. */
export const TOKENS_PER_ATTACHMENT = 1_500;

/**
 * Estimates the tokens of a text without a tokenizer: one per three ASCII characters, and one per other
 * character. The estimate is high, so that a call rarely costs more than what was reserved for it.
 */
export function estimateTokens(text: string): number {
  // oxlint-disable-next-line no-control-regex -- the class is all of ASCII
  const other = text.length - text.replaceAll(/[^\u0000-\u007f]/g, '').length;
  return TOKENS_PER_TEXT + other + Math.ceil((text.length - other) / ASCII_PER_TOKEN);
}
