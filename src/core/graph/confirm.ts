const YES: readonly string[] = ['yes', 'y', 'ok'];
const NO: readonly string[] = ['no', 'n'];

/** Reads the answer to a `confirm` node; null for a text that is neither. */
export function readConfirmation(text: string): 'yes' | 'no' | null {
  const word = text.trim().toLowerCase();
  if (YES.includes(word)) return 'yes';
  return NO.includes(word) ? 'no' : null;
}
