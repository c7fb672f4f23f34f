import type { FileHandle } from 'node:fs/promises';

const CHUNK_BYTES = 64 * 1024;
const SNIFF_BYTES = 8 * 1024;

/** Reads a file in chunks from its start; each chunk is valid until the next one is read. */
export async function* chunksOf(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let position = 0; ;) {
    signal.throwIfAborted();
    const { bytesRead, buffer } = await handle.read(
      Buffer.allocUnsafe(CHUNK_BYTES),
      0,
      CHUNK_BYTES,
      position,
    );
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Returns whether the first 8 KiB of a file contain a NUL or are not UTF-8. */
export function isBinary(start: Buffer): boolean {
  const sniffed = start.subarray(0, SNIFF_BYTES);
  if (sniffed.includes(0)) return true;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(sniffed, { stream: true });
    return false;
  } catch {
    return true;
  }
}

/** Formats a size for people and models: `412 bytes`, `3.1 kB`, `12 MB`. */
export function readableSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  const exponent = Math.min(Math.floor(Math.log10(bytes) / 3), units.length);
  const value = bytes / 1_000 ** exponent;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[exponent - 1]}`;
}
