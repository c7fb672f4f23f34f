import { InputError } from '../core/errors.js';
import type { Typed } from '../core/definition/output-type.js';
import type { Limits } from '../core/definition/definition.js';
import { isProblem, parseRunInput, type ForkInput, type RunInput } from '../core/input/input.js';
import type { Attachment } from '../core/transcript/messages.js';
import type { Json, JsonObject } from '../core/json.js';

/** An agent as `defineAgent` made it, or its name; only the former brings the type of its output. */
export type AgentLike<Output = Json> = string | (Typed<Output> & { readonly name: string });

/** What a run is started with, beside its agent and its message. */
export interface RunSettings {
  /** May lower the agent's limits or replace defaults. */
  readonly limits?: Limits;
  /** JSON that every user function receives; the model never sees it. */
  readonly context?: Json;
  /** Of the agent's instructions, where they are a template: all that it declares, and no others. */
  readonly args?: JsonObject;
  /** For people and filters. */
  readonly tags?: readonly string[];
  /** Keep every message in the archive; default: for open runs. */
  readonly archive?: boolean;
}

export function agentName(agent: AgentLike<unknown>): string {
  return typeof agent === 'string' ? agent : agent.name;
}

/** The argument of workflow `agent`, checked as the workflow will. Throws an `InputError`. */
export function createRunInput(
  agent: AgentLike<unknown>,
  given: RunSettings & {
    readonly message?: string;
    readonly open?: boolean;
    readonly attachments?: readonly Attachment[];
    readonly fork?: ForkInput;
  },
): RunInput {
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  const input = parseRunInput({ ...Object.fromEntries(set), agent: agentName(agent) });
  if (isProblem(input)) throw new InputError(input.problem);
  return input;
}
