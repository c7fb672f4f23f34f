import type { BlobStore } from '../storage/blob-store.js';
import type { BlobRef, Message, ToolCall } from '../core/transcript/messages.js';

/** A stretch of a transcript, both ends from 0: the first message wanted, the first not wanted. */
export interface MessageRange {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export interface TranscriptRange extends MessageRange {
  /** Side branches too: the answers that were refused, and what the model was told of them. */
  readonly side?: boolean | undefined;
}

/**
 * The same messages with each text that lies in the blob store in full. `onMissing` hears of those
 * that cannot be had here; they stay as the model saw them, by head and tail.
 */
export async function withFullText(
  messages: readonly Message[],
  blobs: BlobStore,
  onMissing: (why: string) => void,
): Promise<readonly Message[]> {
  return await Promise.all(messages.map(async (message) => await whole(message)));

  async function whole(message: Message): Promise<Message> {
    const text = await textOf(message, message.text);
    if (message.role !== 'assistant' || message.calls === undefined) return { ...message, text };
    return { ...message, text, calls: await Promise.all(message.calls.map(wholeCall)) };
  }

  async function wholeCall(call: ToolCall): Promise<ToolCall> {
    return { ...call, arguments: await textOf(call, call.arguments) };
  }

  async function textOf({ blob }: { readonly blob?: BlobRef }, shown: string): Promise<string> {
    if (blob === undefined) return shown;
    try {
      return await blobs.get(blob);
    } catch (error) {
      onMissing(error instanceof Error ? error.message : String(error));
      return shown;
    }
  }
}
