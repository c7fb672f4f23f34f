import type { CallArguments, ScriptReply } from '../conversation.js';

/** Constant in size, however long the conversation. */
export interface BareInput {
  readonly model: 'scripted' | 'http';
  /** The conversation's first message. */
  readonly message: string;
}

export interface BareActivities {
  readonly callModel: (input: BareInput & { readonly step: number }) => Promise<ScriptReply>;
  readonly runTool: (input: CallArguments) => Promise<string>;
}
