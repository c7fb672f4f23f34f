import { randomBytes } from 'node:crypto';
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowIdConflictPolicy,
  type WorkflowOptions,
} from '@temporalio/client';
import { type Priority, SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import type { LimitOptions } from '../core/definition/definition.js';
import type { Typed, TypedArgs, TypedInput, TypedPrompts } from '../core/definition/agent-types.js';
import type { Rule } from '../core/definition/rules.js';
import { IdTakenError, InputError, NotDeliveredError } from '../core/errors.js';
import type { ClientTool } from '../core/definition/tool-definition.js';
import { clientToolsProblem } from '../core/input/client-tools.js';
import type { ForkInput } from '../core/input/fork-input.js';
import { INPUT_FIELDS, type RunInput, isProblem, parseRunInput } from '../core/input/input.js';
import { checkLimits, toLimits } from '../core/input/limits.js';
import { givenMessageProblem } from '../core/input/named-prompt.js';
import type { AttachedArtifact } from '../core/input/turn-context.js';
import { workflowSummary } from '../core/run/details.js';
import { visible } from '../core/state/summaries.js';
import { type Json, type JsonObject, isObject, wellFormedJson } from '../core/text/json.js';
import { shorten, show } from '../core/text/text.js';
import type { Attachment, SuppliedMessage } from '../core/transcript/messages.js';
import { type GivenNames, givenMemo, hashedId } from '../temporal/stored-ids.js';
import { hasSearchAttributes, isUnanswered, serverAddress, unreachable } from '../temporal/grpc.js';
import { assertTenantId } from '../temporal/tenant-rules.js';

const SUMMARY_CHARACTERS = 80;

interface StartInput extends Pick<GivenNames, 'givenId'> {
  readonly id: string;
  readonly taskQueue: string;
  /** Whether the id of a run that has ended may be reused; default false. */
  readonly reuseId?: boolean | undefined;
  /** The initial memo of the run, readable by everyone in the namespace. */
  readonly memo?: Readonly<Record<string, unknown>>;
}

export interface StartedRun {
  readonly id: string;
  readonly runId: string;
}

/**
 * Starts a run. Rejects with an `IdTakenError` if a run with this id exists or, without `reuseId`,
 * existed, with an `InputError` if an option is invalid, and with a `NotDeliveredError` if the server
 * does not answer.
 */
export async function startRun(
  client: Client,
  given: RunInput,
  { id, givenId, taskQueue, reuseId = false, memo }: StartInput,
): Promise<StartedRun> {
  assertRunId(id);
  assertTenantId(client, { id, tenant: given.tenant });
  const conflict: WorkflowIdConflictPolicy = 'FAIL';
  const { input, shares } = sharedBy(client, given, { ...(givenId !== undefined && { givenId }) });
  const shown = await shownAtStart(client, input);
  try {
    const handle = await client.workflow.start('agent', {
      taskQueue,
      workflowId: id,
      args: [input],
      workflowIdReusePolicy: reuseId ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
      workflowIdConflictPolicy: conflict,
      staticSummary: runSummary(input),
      ...shares,
      ...shown,
      memo: { ...shares.memo, ...shown.memo, ...memo },
    });
    return { id, runId: handle.firstExecutionRunId };
  } catch (error) {
    if (isUnanswered(error)) throw notStarted(client, id, error);
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    throw new IdTakenError(`a run "${givenId ?? id}" already exists`, { cause: error });
  }
}

/**
 * Returns what lists show of a run before a worker has begun it, as the run itself would write it in
 * its first task. Nothing if the namespace lacks the search attributes; the run then writes those that
 * exist.
 */
async function shownAtStart(
  client: Client,
  { agent, tags }: Pick<RunInput, 'agent' | 'tags'>,
): Promise<Pick<WorkflowOptions, 'typedSearchAttributes' | 'memo'>> {
  if (!(await hasSearchAttributes(client))) return {};
  return {
    typedSearchAttributes: [
      { key: AGENT, value: agent },
      { key: STATUS, value: 'working' },
    ],
    ...(tags && { memo: { tags: [...tags] } }),
  };
}

const AGENT = defineSearchAttributeKey('AgentName', SearchAttributeType.KEYWORD);
const STATUS = defineSearchAttributeKey('AgentStatus', SearchAttributeType.KEYWORD);

function notStarted(client: Client, id: string, cause: unknown): NotDeliveredError {
  const message =
    `${unreachable(serverAddress(client), cause).message} It is unknown whether run "${visible(id)}" was started: ` +
    'start it again with this id; an IdTakenError then means that it was.';
  return new NotDeliveredError(message, { mayArrive: true, cause });
}

/** The server accepts no longer ids. */
const MAX_ID_CHARACTERS = 1_000;

/** The ids of workflows that all runs share: a run with such an id would block the calls of others. */
const RESERVED = /^(?:budget|rate):/;

/** Describes what is wrong with the id of a new run; returns null if it is valid. */
export function runIdProblem(id: string): string | null {
  if (typeof id === 'string' && id.trim() !== '' && id.length <= MAX_ID_CHARACTERS) {
    // A database may refuse such a text, and an unpaired surrogate would become another character.
    if (/\0|\p{Surrogate}/u.test(id))
      return `id: expected no U+0000 and no unpaired surrogate, got ${show(id)}; omit it for a new id`;
    if (!RESERVED.test(id)) return null;
    return `id: expected one that does not begin with "budget:" or "rate:", got ${show(id)}; these are ids of perdure's own workflows`;
  }
  return `id: expected a string of 1 to ${MAX_ID_CHARACTERS} characters, got ${show(id)}; omit it for a new id`;
}

/** Throws an `InputError` for an invalid run id. */
export function assertRunId(id: string): void {
  const problem = runIdProblem(id);
  if (problem !== null) throw new InputError(problem);
}

/** Returns a readable and unique id, such as `files-20261121-8f3a2c`. `prefix`: see `tenantIdPrefix`. */
export function newRunId(agent: string, prefix = ''): string {
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '');
  return `${prefix}${agent}-${day}-${randomBytes(3).toString('hex')}`;
}

/**
 * Returns the run's summary for Temporal's UI: Markdown that shows the message as it was written.
 */
export function runSummary({
  agent,
  prompt = '',
  message = prompt,
}: Pick<RunInput, 'agent' | 'message' | 'prompt'>): string {
  return workflowSummary(`${visible(agent)}: ${shorten(visible(message), SUMMARY_CHARACTERS)}`);
}

/** An agent from `defineAgent`, with the type of its output, or an agent's name. */
export type AgentLike<Output = Json, Input = unknown, Prompts = unknown, Args = unknown> =
  | string
  | (Typed<Output> &
      TypedInput<Input> &
      TypedPrompts<Prompts> &
      TypedArgs<Args> & { readonly name: string });

/**
 * The settings of a run, in addition to its agent and its message. `Args`: the type of the arguments
 * of the agent's instructions.
 */
export interface RunSettings<Args = unknown> {
  /** Limits that lower the agent's limits or replace defaults. Default: those of the agent. */
  readonly limits?: LimitOptions;
  /** JSON that every user function receives. The model never sees it. Default: null. */
  readonly context?: Json;
  /**
   * The arguments of the agent's instructions, if they are a template: exactly those that it
   * declares. Default: none.
   */
  readonly args?: unknown extends Args ? JsonObject : Args;
  /**
   * Settings of the model for the first turn, such as `temperature` or `metadata`, in addition to
   * those of the agent, which has to allow them (`callSettings`). Default: none.
   */
  readonly settings?: JsonObject;
  /** Labels for people and filters. Default: none. */
  readonly tags?: readonly string[];
  /** Whether to keep every message in the archive; default: only for open runs. */
  readonly archive?: boolean;
  /**
   * Who starts the run: a claim of 1 to 200 characters that is recorded but not verified. Default:
   * `by` of the client, if it has one.
   */
  readonly by?: string;
  /**
   * Rules for the run's tool calls. They only tighten those of its agent and its workers. Default:
   * none.
   */
  readonly rules?: readonly Rule[];
  /**
   * Who shares the workers with others, in 1 to 64 bytes, such as the id of a customer. When work waits, the
   * server takes that of each tenant in turn, so many runs of one do not delay a few of another. Called
   * agents inherit it. If the tenant has an encryption key of its own, the id of the run begins with
   * `TENANT/`, and a start with another id is refused. Default: all runs without a tenant share one turn.
   */
  readonly tenant?: string;
  /**
   * With `deny`, every approval is denied and no question is asked, because no person is available.
   * Default: people are asked.
   */
  readonly unattended?: 'deny';
  /**
   * The number of failed attempts of a model call, 1 to 10, after which the turn fails. The turn
   * fails at once where the run would otherwise be blocked, as by a refused key. Default: the run
   * waits until the model answers.
   */
  readonly modelAttempts?: number;
}

/**
 * Returns the input of a run with its tenant as the server gets it, and the options with which Temporal gives tenants
 * fair shares; activities and children inherit the priority. The memo names the tenant for lists, which have no
 * priority, and what the caller has chosen if the server gets hashes.
 */
export function sharedBy<Input extends Pick<RunInput, 'tenant'>>(
  client: Client,
  input: Input,
  given: Pick<GivenNames, 'givenId'> = {},
): {
  readonly input: Input;
  readonly shares: {
    readonly priority?: Priority;
    readonly memo?: Readonly<Record<string, unknown>>;
  };
} {
  const { tenant: named } = input;
  if (named === undefined) return { input, shares: { memo: givenMemo(given) } };
  const tenant = hashedId(client, 'tenant', named);
  const memo = givenMemo({ ...given, ...(tenant !== named && { givenTenant: named }) });
  return {
    input: { ...input, tenant },
    shares: { priority: { fairnessKey: tenant }, memo: { tenant, ...memo } },
  };
}

export function agentName(agent: AgentLike<unknown>): string {
  if (typeof agent === 'string') return agent;
  const given: unknown = agent;
  if (isObject(given) && typeof given['name'] === 'string') return given['name'];
  if (isObject(given) && typeof given['wire'] === 'function') {
    throw new InputError(
      'agent: expected an agent or the name of one, got a graph whose exits are not wired; call .wire({ start, edges }) on it',
    );
  }
  throw new InputError(`agent: expected an agent or the name of one, got ${show(given)}`);
}

/** Throws an `InputError` for a field that a start does not have. Fields without a value do not count. */
export function assertStartFields(given: object): void {
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  const stray = givenMessageProblem(Object.fromEntries(set), INPUT_FIELDS);
  if (stray !== null) throw new InputError(stray);
}

/**
 * Returns the input of workflow `agent`, without half surrogate pairs. Throws an `InputError` if the workflow would refuse it.
 */
export function createRunInput(
  agent: AgentLike<unknown>,
  given: RunSettings & {
    readonly door?: string;
    readonly message?: string;
    readonly messages?: readonly SuppliedMessage[];
    readonly prompt?: string;
    /** JSON, typed by the prompt if the client knows the agent. */
    readonly promptArgs?: unknown;
    readonly open?: boolean;
    readonly attachments?: readonly Attachment[];
    readonly artifacts?: readonly AttachedArtifact[];
    readonly fork?: ForkInput;
    readonly clientTools?: readonly ClientTool[];
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
  assertStartFields(whole);
  const input = parseRunInput(whole);
  if (isProblem(input)) throw new InputError(input.problem);
  const problem = checkLimits(input.limits, 'limits') ?? clientToolsProblem(input.clientTools);
  if (problem !== null) throw new InputError(problem);
  return input;
}
