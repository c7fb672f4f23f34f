/** Follows the text of an answer that gives the reason of a no. A command replaces it by its own. */
export const NO_REASON = ': the reason of a no is the note of `deny`';

/** Returns where the reason of a no belongs, to follow an answer that gives one; empty for any other. */
export function noReason(text: string): string {
  return reasonOfNo(text) === null ? '' : NO_REASON;
}

const NO_WITH_REASON = /^(?:no|deny|reject)(?:[,:;]|(?=\s+because\b))\s*(\S.*)$/is;
const REFUSAL = /^(?:no|deny|reject)(?:[\s,.:;!]|$)/i;

/** Returns the reason of a no, as in `no, it is too late` or `no because …`; null for any other text. */
export function reasonOfNo(text: string): string | null {
  return NO_WITH_REASON.exec(text.trim())?.[1] ?? null;
}

/**
 * Returns the reason in a text that reads as a refusal: what follows its first word and a comma or the
 * like, or the whole text without one, as in `no way`. Empty for the word alone; null for any other text.
 */
export function readRefusal(text: string): string | null {
  const said = text.trim();
  if (!REFUSAL.test(said)) return null;
  const rest = said.replace(/^\w+/, '');
  return /^\s/.test(rest) ? (reasonOfNo(said) ?? said) : rest.replace(/^[,.:;!]+/, '').trim();
}
