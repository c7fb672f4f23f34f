/**
 * How servers say in free text that the prompt is larger than the model's window; only OpenAI and
 * a few others send a code for it.
 */
const PHRASES: readonly RegExp[] = [
  /maximum (context|prompt) length/i,
  /context[_ ](length|window|size)[_ ]exceeded/i,
  /(exceed|overflow|larger than|greater than|longer than).{0,60}context[_ ](window|length|size)/i,
  /context[_ ](window|length|size).{0,60}(exceed|overflow|too (long|small))/i,
  /(prompt|input) is too long/i,
  /(prompt|input).{0,60}exceeds the maximum/i,
  /reduce the length of (the|your) (messages|prompt)/i,
  /too many (input |prompt )?tokens(?! per)/i,
  /token limit exceeded|exceed\w{0,9} (the )?(model )?token limit/i,
];

/** Said with 413, and with 429 when a single request is larger than a minute's allowance: waiting does not help. */
const TOO_LARGE = /request (entity )?too large/i;

/** True when the provider's text says that the prompt does not fit the model. */
export function saysContextTooLong(text: string): boolean {
  return PHRASES.some((phrase) => phrase.test(text));
}

export function saysRequestTooLarge(text: string): boolean {
  return TOO_LARGE.test(text);
}
