/** Every message costs a few tokens beside its text: role, separators, ids. */
const TOKENS_PER_TEXT = 4;
const CHARACTERS_PER_TOKEN = 3;

/**
 * Tokens of a text without a tokenizer, on the high side for English and code, so that what is
 * reserved before a call is rarely less than what it costs.
 */
export function estimateTokens(text: string): number {
  return TOKENS_PER_TEXT + Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}
