/** New names of large texts, by their old ones: both are the SHA-256 of a text. */
export type BlobNames = ReadonlyMap<string, string>;

/**
 * Returns a text with the new names. They also stand in texts, such as the note by which a model reads
 * on in a large result.
 */
export function renameBlobs(text: string, names: BlobNames): string {
  if (names.size === 0) return text;
  return text.replace(/[0-9a-f]{64}/g, (name) => names.get(name) ?? name);
}

/** Returns a value with the new names in all of its texts. */
export function renameBlobsIn<T>(value: T, names: BlobNames): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only texts within it change
  return renamedIn(value, names) as T;
}

function renamedIn(value: unknown, names: BlobNames): unknown {
  if (typeof value === 'string') return renameBlobs(value, names);
  if (Array.isArray(value)) return value.map((one) => renamedIn(one, names));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, renamedIn(one, names)]),
  );
}
