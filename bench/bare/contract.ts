import type OpenAI from 'openai';
import type { CallArguments, ScriptReply } from '../conversation.js';

/** Constant in size, however long the conversation. */
export interface BareInput {
  readonly model: 'scripted' | 'http';
  /** The conversation's first message. */
  readonly message: string;
}

/** A plan of many actions, each of which depends on the one `width` places before it. */
export const WIDE = { actions: 200, width: 50, atOnce: 50 } as const;

/** A message as it is sent to the provider. */
export type SentMessage = OpenAI.Chat.ChatCompletionMessageParam;

export interface BareActivities {
  readonly callModel: (input: BareInput & { readonly step: number }) => Promise<ScriptReply>;
  /** Sends the whole conversation, which the workflow keeps. */
  readonly callWith: (messages: readonly SentMessage[]) => Promise<ScriptReply>;
  readonly runTool: (input: CallArguments) => Promise<string>;
  /** A tool that costs nothing. */
  readonly act: (index: number) => Promise<number>;
}
