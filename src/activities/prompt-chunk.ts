import type { BlobStore } from '../blobs/blob-store.js';
import { parseJson } from '../core/json.js';
import type { Message } from '../core/messages.js';
import type { PromptChunk } from '../core/transcript.js';

/** A part of a prompt as it lies in the blob store: one JSON line per message. */
export function writeChunk(messages: readonly Message[]): string {
  return messages.map((message) => JSON.stringify(message)).join('\n');
}

/** Rejects when the blob is not to be had, or is not what the run says it is. */
export async function readChunk(
  { blob, count }: PromptChunk,
  blobs: BlobStore,
): Promise<readonly Message[]> {
  const lines = (await blobs.get(blob)).split('\n');
  if (lines.length !== count) {
    throw new Error(`blob ${blob.sha256} has ${lines.length} messages, the run says ${count}`);
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- content-addressed, written above
  return lines.map((line) => parseJson(line) as Message);
}
