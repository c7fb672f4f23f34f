import type { TurnOf } from '../core/definition/output-type.js';
import type { Ask } from '../core/inbox.js';
import type { ArtifactsField } from './store-artifacts.js';
import type { Json, JsonObject } from '../core/json.js';
import type {
  DeliveredMessage,
  RecordedMessage,
  SentMessage,
} from '../updates/deliver-or-record.js';

/** The names of an agent's prompts; any text if its type is not known. */
export type PromptName<Prompts> = unknown extends Prompts ? string : keyof Prompts & string;

/** What a prompt takes and gives. */
interface PromptType {
  readonly args: object;
  readonly output: unknown;
}

type TypeOf<Prompts, Name> = Name extends keyof Prompts
  ? Prompts[Name] extends PromptType
    ? Prompts[Name]
    : never
  : never;

/** The field with the arguments of a prompt: required if one of them is. */
type ArgsField<Prompts, Name, Field extends string = 'args'> = unknown extends Prompts
  ? { readonly [Key in Field]?: JsonObject }
  : TypeOf<Prompts, Name>['args'] extends Readonly<Record<string, never>>
    ? { readonly [Key in Field]?: Readonly<Record<string, never>> }
    : object extends TypeOf<Prompts, Name>['args']
      ? { readonly [Key in Field]?: TypeOf<Prompts, Name>['args'] }
      : { readonly [Key in Field]: TypeOf<Prompts, Name>['args'] };

/** The type of the output of a turn that answers a prompt; `Default`: of a turn without one. */
export type PromptOutput<Prompts, Name, Default = Json> = [Name] extends [never]
  ? Default
  : unknown extends Prompts
    ? Default
    : TypeOf<Prompts, Name>['output'];

/** A message with the values of its artifacts, which the client stores for the run. */
export type AskInput = Omit<Ask, 'artifacts'> & ArtifactsField;

/** A message that is a named prompt of the agent, with its arguments. */
export type NamedPromptMessage<Prompts, Name extends PromptName<Prompts>> = Omit<
  AskInput,
  'message' | 'messages' | 'input' | 'prompt' | 'args'
> & { readonly prompt: Name } & ArgsField<Prompts, Name>;

/** What `ask` sends: a text, a message, or a named prompt. */
export type AskMessage<Prompts, Name extends PromptName<Prompts>> =
  | string
  | (unknown extends Prompts
      ? AskInput
      : AskInput & { readonly prompt?: never; readonly args?: never })
  | NamedPromptMessage<Prompts, Name>;

/** How `start` names a prompt in place of `message`. */
export type StartPrompt<Prompts, Name extends PromptName<Prompts>> =
  | { readonly prompt?: never; readonly promptArgs?: never }
  | ({ readonly prompt: Name; readonly message?: never; readonly messages?: never } & ArgsField<
      Prompts,
      Name,
      'promptArgs'
    >);

/** A message that was sent. That of a named prompt has the type of its output with the number of its turn. */
export type SentPrompt<Prompts, Name> = [Name] extends [never]
  ? SentMessage
  : (DeliveredMessage & { readonly turn: TurnOf<PromptOutput<Prompts, Name>> }) | RecordedMessage;
