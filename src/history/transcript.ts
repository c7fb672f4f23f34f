import type { BlobStore } from '../storage/blob-store.js';
import type { BlobRef, Message, ToolCall } from '../core/transcript/messages.js';

/**
 * Returns the messages with the full texts from the blob store. A text that cannot be read stays in
 * the model's form, shortened to head and tail; `onMissing` is called with the reason.
 */
export async function withFullText(
  messages: readonly Message[],
  blobs: BlobStore,
  onMissing: (why: string) => void,
): Promise<readonly Message[]> {
  return await Promise.all(messages.map(async (message) => await expand(message)));

  async function expand(message: Message): Promise<Message> {
    const text = await textOf(message, message.text);
    if (message.role !== 'assistant' || message.calls === undefined) return { ...message, text };
    return { ...message, text, calls: await Promise.all(message.calls.map(expandCall)) };
  }

  async function expandCall(call: ToolCall): Promise<ToolCall> {
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
