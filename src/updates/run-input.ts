import { InputError } from '../core/errors.js';
import { wellFormedJson } from '../core/foreign-json.js';
import type { Typed, TypedInput, TypedPrompts } from '../core/definition/output-type.js';
import type { LimitOptions } from '../core/definition/definition.js';
import { toLimits } from '../core/input/check-limits.js';
import type { ForkInput } from '../core/input/check-fork.js';
import { isProblem, parseRunInput, type RunInput } from '../core/input/input.js';
import type { AttachedArtifact } from '../core/input/attached-artifacts.js';
import type { SuppliedMessage } from '../core/input/supplied-messages.js';
import type { Rule } from '../core/requests/rules.js';
import type { Attachment } from '../core/transcript/messages.js';
import type { Json, JsonObject } from '../core/json.js';

/** An agent from `defineAgent`, with the type of its output, or an agent's name. */
export type AgentLike<Output = Json, Input = unknown, Prompts = unknown> =
  | string
  | (Typed<Output> & TypedInput<Input> & TypedPrompts<Prompts> & { readonly name: string });

/** The settings of a run, in addition to its agent and its message. */
export interface RunSettings {
  /** Limits that lower the agent's limits or replace defaults. */
  readonly limits?: LimitOptions;
  /** JSON that every user function receives. The model never sees it. */
  readonly context?: Json;
  /**
   * The arguments of the agent's instructions, if they are a template: exactly those that it
   * declares.
   */
  readonly args?: JsonObject;
  /**
   * Settings of the model for the first turn, such as `temperature` or `metadata`, in addition to
   * those of the agent, which has to allow them (`callSettings`).
   */
  readonly settings?: JsonObject;
  /** Labels for people and filters. */
  readonly tags?: readonly string[];
  /** Whether to keep every message in the archive; default: only for open runs. */
  readonly archive?: boolean;
  /** Who starts the run: a claim of 1 to 200 characters that is recorded but not verified. */
  readonly by?: string;
  /** Rules for the run's tool calls. They only tighten those of its agent and its workers. */
  readonly rules?: readonly Rule[];
  /**
   * With `deny`, every approval is denied and no question is asked, because no person is available.
   */
  readonly unattended?: 'deny';
  /**
   * The number of failed attempts of a model call, 1 to 10, after which the turn fails. The turn
   * fails at once where the run would otherwise be blocked, as by a refused key. Default: the run
   * waits until the model answers.
   */
  readonly modelAttempts?: number;
}

export function agentName(agent: AgentLike<unknown>): string {
  return typeof agent === 'string' ? agent : agent.name;
}

/**
 * Returns the input of workflow `agent`, without half surrogate pairs. Throws an `InputError` if the workflow would refuse it.
 */
export function createRunInput(
  agent: AgentLike<unknown>,
  given: RunSettings & {
    readonly message?: string;
    readonly messages?: readonly SuppliedMessage[];
    readonly prompt?: string;
    /** JSON, typed by the prompt if the client knows the agent. */
    readonly promptArgs?: unknown;
    readonly open?: boolean;
    readonly attachments?: readonly Attachment[];
    readonly artifacts?: readonly AttachedArtifact[];
    readonly fork?: ForkInput;
    /** JSON, typed by the state if the agent is a graph. */
    readonly input?: unknown;
  },
): RunInput {
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  const limits = given.limits === undefined ? {} : { limits: toLimits(given.limits) };
  const whole = wellFormedJson({
    ...Object.fromEntries(set),
    ...limits,
    agent: agentName(agent),
  });
  const input = parseRunInput(whole);
  if (isProblem(input)) throw new InputError(input.problem);
  return input;
}
