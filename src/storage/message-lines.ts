import type { FileHandle } from 'node:fs/promises';
import { isObject, parseJson } from '../core/json.js';
import type { Message } from '../core/transcript/messages.js';

const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/** Parses the message of a line. Returns undefined for an empty line, half a line, and any other text. */
export function messageIn(line: string): Message | undefined {
  const value = parseJson(line);
  return isMessage(value) ? value : undefined;
}

function isMessage(value: unknown): value is Message {
  if (!isObject(value)) return false;
  const { n, role, text } = value;
  return Number.isSafeInteger(n) && typeof role === 'string' && typeof text === 'string';
}

/**
 * Returns the complete lines that begin at byte `start` or later. Only `\n` ends a line, because JSON texts
 * may contain all other line ends. An incomplete last line is skipped, since it may still be written.
 */
export async function* linesFrom(handle: FileHandle, start: number): AsyncGenerator<string> {
  // Reads one byte earlier to see whether a line begins at `start`; a line that begins earlier is skipped.
  let earlier = start > 0;
  let begun: Buffer[] = [];
  for (let position = earlier ? start - 1 : 0; ;) {
    const chunk = await handle.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    if (chunk.bytesRead === 0) return;
    position += chunk.bytesRead;
    let rest = chunk.buffer.subarray(0, chunk.bytesRead);
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      if (!earlier) yield Buffer.concat([...begun, rest.subarray(0, end)]).toString();
      earlier = false;
      begun = [];
      rest = rest.subarray(end + 1);
    }
    begun.push(rest);
  }
}
