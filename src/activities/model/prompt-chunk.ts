import type { BlobStore } from '../../storage/blob-store.js';
import { readFor, StoreFault } from '../../storage/worker-store.js';
import { parseJson } from '../../core/json.js';
import type { Message } from '../../core/transcript/messages.js';
import type { PromptChunk } from '../../core/transcript/transcript.js';

/** Returns a part of a prompt as it is stored in the blob store: one JSON line per message. */
export function formatChunk(messages: readonly Message[]): string {
  return messages.map((message) => JSON.stringify(message)).join('\n');
}

/** Reads a part of a prompt. Rejects with a `StoreFault` if the blob is unreadable or damaged. */
export async function readChunk(
  { blob, count }: PromptChunk,
  blobs: BlobStore,
): Promise<readonly Message[]> {
  const lines = (await readFor('an earlier part of the conversation', blob, blobs)).split('\n');
  if (lines.length !== count) {
    const { sha256 } = blob;
    const message = `an earlier part of the conversation cannot be read: blob ${sha256} has ${lines.length} messages, and the run expects ${count}; restore it from a backup`;
    throw new StoreFault(message, { kind: 'damaged', sha256 });
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- content-addressed, written above
  return lines.map((line) => parseJson(line) as Message);
}
