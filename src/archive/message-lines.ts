import type { FileHandle } from 'node:fs/promises';
import { isObject, parseJson } from '../core/json.js';
import type { Message } from '../core/messages.js';

const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/** The message of a line; undefined for an empty line, half of one and anything else. */
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
 * The lines from byte `start` on, a last one without an end included. Only `\n` ends a line: a text
 * in JSON may hold every other line end there is.
 */
export async function* linesFrom(handle: FileHandle, start: number): AsyncGenerator<string> {
  let begun: Buffer[] = [];
  for (let position = start; ;) {
    const chunk = await handle.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    if (chunk.bytesRead === 0) break;
    position += chunk.bytesRead;
    let rest = chunk.buffer.subarray(0, chunk.bytesRead);
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      yield Buffer.concat([...begun, rest.subarray(0, end)]).toString();
      begun = [];
      rest = rest.subarray(end + 1);
    }
    begun.push(rest);
  }
  yield Buffer.concat(begun).toString();
}
