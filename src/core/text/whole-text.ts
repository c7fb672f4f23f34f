/**
 * Returns the text with each half of a surrogate pair that stands alone replaced by U+FFFD. Such a
 * half has no UTF-8 form: databases refuse it, and so do many providers, in every later request.
 */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** Returns at most the first `units` UTF-16 units of a text, never ending inside a surrogate pair. */
export function headOf(text: string, units: number): string {
  if (text.length <= units) return text;
  const end = Math.max(0, units);
  return text.slice(0, isHighHalf(text.charCodeAt(end - 1)) ? end - 1 : end);
}

/** Returns at most the last `units` UTF-16 units of a text, never beginning inside a pair. */
export function tailOf(text: string, units: number): string {
  if (text.length <= units) return text;
  const from = text.length - Math.max(0, units);
  return text.slice(isLowHalf(text.charCodeAt(from)) ? from + 1 : from);
}

/**
 * Returns the text without the last characters that `tail` matches, one unit at a time: an
 * expression such as `/x+$/` takes quadratic time.
 */
export function withoutTail(text: string, tail: RegExp): string {
  let end = text.length;
  while (end > 0 && tail.test(text[end - 1] ?? '')) end -= 1;
  return text.slice(0, end);
}

function isHighHalf(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff;
}

function isLowHalf(unit: number): boolean {
  return unit >= 0xdc_00 && unit <= 0xdf_ff;
}
