/** Media types that can be detected by their first bytes. */
export type MediaType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'application/pdf';

/** The bytes (as Latin-1) of each type, by offset. */
const MAGIC: readonly (readonly [MediaType, readonly (readonly [number, string])[]])[] = [
  ['image/png', [[0, '\x89PNG\r\n\x1a\n']]],
  ['image/jpeg', [[0, '\xff\xd8\xff']]],
  ['image/gif', [[0, 'GIF87a']]],
  ['image/gif', [[0, 'GIF89a']]],
  [
    'image/webp',
    [
      [0, 'RIFF'],
      [8, 'WEBP'],
    ],
  ],
  ['application/pdf', [[0, '%PDF-']]],
];

/** Number of bytes that `detectMediaType` reads. */
export const MAGIC_BYTES = 12;

/** Returns the media type of bytes, regardless of a name or a header; null if it is unknown. */
export function detectMediaType(bytes: Uint8Array): MediaType | null {
  const head = String.fromCharCode(...bytes.subarray(0, MAGIC_BYTES));
  const found = MAGIC.find(([, marks]) => marks.every(([at, mark]) => head.startsWith(mark, at)));
  return found?.[0] ?? null;
}
