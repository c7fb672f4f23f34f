import type { TurnOf } from '../core/definition/output-type.js';
import type { ArgsField, PromptName, PromptOutput } from '../core/definition/prompt-types.js';
import type { Ask } from '../core/inbox.js';
import type { ArtifactsField } from './store-artifacts.js';
import type {
  DeliveredMessage,
  RecordedMessage,
  SentMessage,
} from '../updates/deliver-or-record.js';

/** A message with the values of its artifacts, which the client stores for the run. */
export type MessageInput = Omit<Ask, 'artifacts'> & ArtifactsField;

/** A message that is a named prompt of the agent, with its arguments. */
export type NamedPromptMessage<Prompts, Name extends PromptName<Prompts>> = Omit<
  MessageInput,
  'message' | 'messages' | 'input' | 'prompt' | 'args'
> & { readonly prompt: Name } & ArgsField<Prompts, Name>;

/** What `send` sends: a text, a message, or a named prompt. */
export type OutgoingMessage<Prompts, Name extends PromptName<Prompts>> =
  | string
  | (unknown extends Prompts
      ? MessageInput
      : MessageInput & { readonly prompt?: never; readonly args?: never })
  | NamedPromptMessage<Prompts, Name>;

/** A message that was sent. For a named prompt, the turn number carries the type of the output. */
export type SentPrompt<Prompts, Name> = [Name] extends [never]
  ? SentMessage
  : (DeliveredMessage & { readonly turn: TurnOf<PromptOutput<Prompts, Name>> }) | RecordedMessage;
