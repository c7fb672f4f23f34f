import type { ContentPart } from '../../wire/attachment-parts.js';

/** A message in the form of Chat Completions. */
export type ChatMessage =
  | { readonly role: 'system' | 'developer'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly ContentPart[] }
  | AssistantChatMessage
  | {
      readonly role: 'tool';
      readonly tool_call_id: string;
      readonly name?: string;
      readonly content: string;
    };

/** A reply of the model, with the fields that its server needs back. */
export interface AssistantChatMessage {
  readonly role: 'assistant';
  /** Absent in the form for servers that accept neither null nor an empty text. */
  readonly content?: string | null;
  readonly tool_calls?: readonly ChatCall[];
  readonly [opaque: string]: unknown;
}

/** A tool call in the form of Chat Completions, with the fields that its server needs back. */
export interface ChatCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly arguments: string;
    readonly [opaque: string]: unknown;
  };
  readonly [opaque: string]: unknown;
}
