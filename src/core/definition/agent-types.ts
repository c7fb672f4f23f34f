import type { Json, JsonObject } from '../text/json.js';

declare const OUTPUT: unique symbol;

/** Type-only: the type of `output` in a completed turn. */
export interface Typed<Output> {
  readonly [OUTPUT]?: Output;
}

declare const PROMPTS: unique symbol;

/** Type-only: the arguments and the output of each named prompt. */
export interface TypedPrompts<Prompts> {
  readonly [PROMPTS]?: Prompts;
}

/** The number of a turn that answers a named prompt, with the type of its output. */
export type TurnOf<Output> = number & { readonly [OUTPUT]: Output };

declare const INPUT: unique symbol;

/** Type-only: the type of a graph's `input`. */
export interface TypedInput<Input> {
  readonly [INPUT]?: Input;
}

declare const ARGS: unique symbol;

/** Type-only: the type of the arguments of an agent's instructions, if they are a template. */
export interface TypedArgs<Args> {
  readonly [ARGS]?: Args;
}

/** The names of an agent's prompts; any string if its type is unknown. */
export type PromptName<Prompts> = unknown extends Prompts ? string : keyof Prompts & string;

/** The argument and output types of a prompt. */
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
export type ArgsField<Prompts, Name, Field extends string = 'args'> = unknown extends Prompts
  ? { readonly [Key in Field]?: JsonObject }
  : TypeOf<Prompts, Name>['args'] extends Readonly<Record<string, never>>
    ? { readonly [Key in Field]?: Readonly<Record<string, never>> }
    : object extends TypeOf<Prompts, Name>['args']
      ? { readonly [Key in Field]?: TypeOf<Prompts, Name>['args'] }
      : { readonly [Key in Field]: TypeOf<Prompts, Name>['args'] };

/**
 * The output type of a turn that answers a prompt; `Default` is that of a turn without a prompt.
 */
export type PromptOutput<Prompts, Name, Default = Json> = [Name] extends [never]
  ? Default
  : unknown extends Prompts
    ? Default
    : TypeOf<Prompts, Name>['output'];

/** The fields by which `start` specifies a prompt in place of `message`. */
export type StartPrompt<Prompts, Name extends PromptName<Prompts>> =
  | { readonly prompt?: never; readonly promptArgs?: never }
  | ({ readonly prompt: Name; readonly message?: never; readonly messages?: never } & ArgsField<
      Prompts,
      Name,
      'promptArgs'
    >);

/** The type of an agent's output; any JSON if the agent's type is unknown. */
export type OutputOf<Agent> = Agent extends Typed<infer Output> ? Output : Json;

/** The type of a graph's `input`; any JSON object if the agent's type is unknown. */
export type InputOf<Agent> =
  Agent extends TypedInput<infer Input> ? (unknown extends Input ? JsonObject : Input) : JsonObject;

/** The type of the arguments of an agent's instructions; any JSON object if it is unknown. */
export type ArgsOf<Agent> =
  Agent extends TypedArgs<infer Args> ? (unknown extends Args ? JsonObject : Args) : JsonObject;

/** The types of an agent's prompts. */
export type PromptsOf<Agent> = Agent extends TypedPrompts<infer Prompts> ? Prompts : unknown;
