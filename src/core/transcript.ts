import { sha256Hex } from './digest.js';
import type { Message, PromptMessage, ToolCall } from './messages.js';

/**
 * The ordered canonical messages of a run and the digest of all that the model sees of them.
 * Two transcripts with equal `head` give the same prompt, byte for byte; that is what lets a worker
 * serve a prompt from memory and still never serve a wrong one.
 */
export interface Transcript {
  readonly messages: readonly Message[];
  readonly head: string;
}

/** The digest of an empty transcript under a definition. */
export function emptyTranscript(definitionHash: string): Transcript {
  return { messages: [], head: chain(definitionHash, null) };
}

/** The next link: 32 hex digits over the previous link and what the model sees of one message. */
export function chain(head: string, prompt: PromptMessage | null): string {
  return sha256Hex(`${head}\n${JSON.stringify(prompt)}`).slice(0, 32);
}

export function append(transcript: Transcript, message: Message): Transcript {
  return {
    messages: [...transcript.messages, message],
    head: chain(transcript.head, promptOf(message)),
  };
}

/** What the model sees of a message; built key by key, because the digest covers the order of keys. */
export function promptOf(message: PromptMessage): PromptMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', text: message.text };
    case 'assistant':
      return message.calls === undefined
        ? { role: 'assistant', text: message.text }
        : { role: 'assistant', text: message.text, calls: message.calls.map(promptCall) };
    case 'tool':
      return { role: 'tool', text: message.text, callId: message.callId };
  }
}

function promptCall(call: ToolCall): ToolCall {
  return { id: call.id, name: call.name, arguments: call.arguments, digest: call.digest };
}
