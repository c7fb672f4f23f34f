/** Formats a number with its noun: `1 file`, `2 files`. */
export function formatCount(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}
