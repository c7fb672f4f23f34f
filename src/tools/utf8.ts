/** Returns the longest start of `text` that fits `maxBytes` of UTF-8, cut between characters. */
export function headBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text.slice(0, maxBytes));
  if (bytes.length <= maxBytes) return text.slice(0, maxBytes);
  let end = maxBytes;
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.toString('utf8', 0, end);
}

/** Returns the longest end of `text` that fits `maxBytes` of UTF-8, cut between characters. */
export function tailBytes(text: string, maxBytes: number): string {
  if (maxBytes <= 0) return '';
  const bytes = Buffer.from(text.slice(-maxBytes));
  if (bytes.length <= maxBytes) return text.slice(-maxBytes);
  let start = bytes.length - maxBytes;
  while (start < bytes.length && isContinuation(bytes[start])) start += 1;
  return bytes.toString('utf8', start);
}

/** Returns whether a byte is inside a UTF-8 character, that is, not its first byte. */
export function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
