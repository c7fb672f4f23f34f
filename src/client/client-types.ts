import type { Client } from '@temporalio/client';
import { z } from 'zod';
import type {
  PromptName,
  PromptOutput,
  StartPrompt,
  TurnOf,
} from '../core/definition/agent-types.js';
import type { ClientTool } from '../core/definition/tool-definition.js';
import { actorOf, withoutDoor } from '../core/input/turn-context.js';
import { type Json, type JsonObject, isObject } from '../core/text/json.js';
import type { Attachment, SuppliedMessage } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { Decision } from '../core/transcript/request.js';
import type { EncryptionOptions } from '../encryption/keyring.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import type { ToolLock } from '../storage/tool-lock.js';
import type { ConnectionSettings } from '../temporal/connection.js';
import type { DecisionOptions, ResolveOptions } from '../updates/decide.js';
import type { AgentLike, RunSettings } from '../updates/start.js';
import type { ActorClaim } from '../workflows/messages/definitions.js';
import { type OptionSchemas, checkOptions, expectedHidden } from '../validation/check-options.js';
import type { ArtifactsField, AttachOptions, OutgoingMessage, SentPrompt } from './attach.js';
import type { BatchOptions, BatchTask, RunBatch } from './batch.js';
import type {
  CancelOptions,
  ControlMethods,
  DecisionMethods,
  RunHandle,
  RunLike,
} from './control.js';
import type { ForkOptions, KnownAgent } from './fork-run.js';
import type { ReadMethods } from './read-methods.js';
import type { Schedules } from './schedule/methods.js';
import type { ResultOptions } from './status.js';

/**
 * Options of `createClient`: the server, the task queue, the stores, and the user of the client. An
 * option that is set here takes precedence over `config`, and `config` over the environment.
 */
export interface ClientOptions extends ConnectionSettings {
  /**
   * The task queue of the workers; default: that of `config`, else PERDURE_TASK_QUEUE, else
   * `perdure`.
   */
  readonly taskQueue?: string;
  /** The environment for addresses, keys, and PERDURE_HOME; default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * An existing client of Temporal's SDK. `disconnect` does not close it. Default: a connection of
   * its own.
   */
  readonly client?: Client;
  /** The workers' PERDURE_HOME, for stored data; default: that of `env`, else `.perdure`. */
  readonly home?: string;
  /** The archive that the workers use; default: files below `home`. */
  readonly archive?: Archive;
  /** The store for attachments, the same as that of the workers; default: files below `home`. */
  readonly blobs?: BlobStore;
  /** Only workers use it; it is part of the stores that `s3Stores` makes. Default: none. */
  readonly toolLock?: ToolLock;
  /**
   * The user of this client, in 1 to 200 characters, such as `web session: ann`. It is recorded
   * with each message and decision but not verified. Default: none.
   */
  readonly by?: string;
  /**
   * `false`: no message of this client decides about a request, whatever it says; only `resolve`
   * does. Use it where the senders of messages may not decide. Default: see `Ask.answers`.
   */
  readonly answers?: false;
  /**
   * The keys with which workers encrypt; default: those of `config`, else of PERDURE_ENCRYPTION_KEYS. With
   * `client`, they apply to stored data and to ids (`hashIds`) only: give that client `encryptionCodec(…)` as its codec.
   */
  readonly encryption?: EncryptionOptions;
  /**
   * The configuration of the workers. Its server, namespace, and task queue take precedence over
   * the environment, as for `createWorker`. An unknown agent is refused at once, with the nearest
   * name. Default: none; every name of an agent is then sent.
   */
  readonly config?: ConnectionSettings & {
    readonly agents: readonly KnownAgent[];
    readonly taskQueue?: string;
    readonly encryption?: EncryptionOptions;
  };
}

/** What a run starts with. `Input` is any of a graph's state fields; an agent has none. */
export interface StartOptions<Input = unknown, Args = unknown>
  extends RunSettings<Args>, ArtifactsField {
  /**
   * Required, except with `messages` or `prompt`, for an open run that gets one later, and for a
   * graph with `input`.
   */
  readonly message?: string;
  /**
   * Several messages as a conversation, in place of `message`; the first and the last have role
   * `user`. Default: none.
   */
  readonly messages?: readonly SuppliedMessage[];
  /** For a graph: fields of its state as JSON, for the start of the first turn. Default: none. */
  readonly input?: unknown extends Input ? JsonObject : Input;
  /** Attachments of the message: images by URL, and results of `attach`. Default: none. */
  readonly attachments?: readonly Attachment[];
  /** The permanent id of the run; default: the agent's name, the date, and random characters. */
  readonly id?: string;
  /**
   * Whether the id of a run that has ended may be reused; default false. The new run shares nothing
   * with the earlier one, which can then be found only in Temporal by its run id.
   */
  readonly reuseId?: boolean;
  /** Whether the run waits for more messages after a turn instead of ending; default false. */
  readonly open?: boolean;
  /**
   * Tools that the caller executes, beside those of the agent, for the whole run. The run pins
   * them. Each call is a request `client_tool`, and `resolve` gives its result. A name that a tool
   * of the agent has is refused, unless that tool has no `execute`: then the agent's definition
   * counts. Default: none.
   */
  readonly clientTools?: readonly ClientTool[];
}

/** What `run` takes besides a message: the settings of a run that ends, and what ends the wait. */
export interface RunOptions<Input = unknown, Args = unknown> extends Omit<
  StartOptions<Input, Args>,
  'open'
> {
  /** Ends the wait. The run is not affected. Default: none. */
  readonly signal?: AbortSignal;
}

/** The outcome of a run, with its id. */
export type RunOutcome<Output = Json> = Outcome<Output> & { readonly id: string };

/** Options of `send`: who sends the message, how long to try, and whether to start the run. */
export interface SendOptions<Args = unknown> extends DecisionOptions {
  /**
   * Starts an open run with these settings if the id is unknown, in one call with the message.
   * Default: an unknown id is refused.
   */
  readonly start?: RunSettings<NoInfer<Args>> & {
    readonly agent: AgentLike<unknown, unknown, unknown, Args>;
  };
}

/**
 * Starts runs, sends them messages and decisions, and reads them. Reading and waiting need no
 * worker. Messages and decisions need one: they reject with a `RefusedError` (`refused`) if the run
 * refuses them, and with a `NotDeliveredError` (`not_delivered`) if no answer comes. For an unknown
 * run, methods reject with a `NoRunError` (`no_run`); for invalid input, with an `InputError`
 * (`input`).
 */
export interface PerdureClient extends ReadMethods, ControlMethods, DecisionMethods {
  /**
   * Starts a run. Rejects with an `IdTakenError` (`id_taken`) if a run with this id exists or,
   * without `reuseId`, existed.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const run = await client.start('files', 'What is here?', { limits: { steps: 9 } });
   * console.log(run.id);
   * ```
   */
  start<
    Output = Json,
    Input = unknown,
    Prompts = unknown,
    const Name extends PromptName<Prompts> = never,
    Args = unknown,
  >(
    agent: AgentLike<Output, Input, Prompts, Args>,
    message:
      | string
      | (StartOptions<NoInfer<Input>, NoInfer<Args>> & StartPrompt<NoInfer<Prompts>, Name>),
    options?: Omit<StartOptions<NoInfer<Input>, NoInfer<Args>>, 'message'>,
  ): Promise<RunHandle<PromptOutput<Prompts, Name, Output>, Prompts>>;
  /**
   * Starts a run and waits for its end: `start` and `result` in one call. Resolves with the outcome,
   * whatever its status, and the id of the run. It also waits while the run waits for a person; the
   * `signal` ends only the wait. Rejects as `start` and `result` do.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { status, answer, id } = await client.run('files', 'What is in this folder?');
   * console.log(id, status, answer);
   * ```
   */
  run<
    Output = Json,
    Input = unknown,
    Prompts = unknown,
    const Name extends PromptName<Prompts> = never,
    Args = unknown,
  >(
    agent: AgentLike<Output, Input, Prompts, Args>,
    message:
      | string
      | (RunOptions<NoInfer<Input>, NoInfer<Args>> & StartPrompt<NoInfer<Prompts>, Name>),
    options?: Omit<RunOptions<NoInfer<Input>, NoInfer<Args>>, 'message'>,
  ): Promise<RunOutcome<PromptOutput<Prompts, Name, Output>>>;
  /**
   * Stores bytes for the workers, for the `attachments` of a message.
   *
   * @example
   * ```ts
   * import { readFile } from 'node:fs/promises';
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const image = await client.attach(await readFile('receipt.png'));
   * await client.send('desk-1', { message: 'What does it say?', attachments: [image] });
   * ```
   */
  attach(bytes: Uint8Array, options?: AttachOptions): Promise<Attachment>;
  /**
   * Starts a run that begins with the messages of another run before number `at`. The other run
   * does not change. The agent is loaded in its current version. Rejects with an `IdTakenError`
   * (`id_taken`).
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const other = await client.fork('desk-1', { at: 4, message: 'Try it without the tool.' });
   * console.log(other.id);
   * ```
   */
  fork<Output = Json>(
    run: RunLike<Output>,
    options: ForkOptions<Output>,
  ): Promise<RunHandle<Output>>;
  /**
   * Sends a message to an open run. Resolves when the run has received it, with the turn that it
   * belongs to. Repeating it with the same message `id` has no further effect. A run that has ended
   * is never started again. Tries for a minute, or `within`. Without a worker, the server records
   * the message: `delivered` is false, the next worker delivers it, and the run's status shows if
   * the run refuses it.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const start = { agent: 'desk' };
   * const sent = await client.send('desk-1', { message: 'Hello', id: 'm-1' }, { start });
   * if (sent.delivered) console.log(await client.result('desk-1', { turn: sent.turn }));
   * ```
   */
  send<Prompts = unknown, const Name extends PromptName<Prompts> = never, Args = unknown>(
    run: RunLike<unknown, Prompts>,
    message: OutgoingMessage<NoInfer<Prompts>, Name>,
    options?: SendOptions<Args>,
  ): Promise<SentPrompt<Prompts, Name>>;
  /**
   * Waits for the end of a turn and returns its outcome, whatever its status. Rejects with an
   * `InputError` (`input`) for a turn that does not exist, and with a `ResultLostError`
   * (`result_lost`) if the turn is over and neither the server nor the archive still has its
   * outcome.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { status, reason, answer } = await client.result('desk-1', { turn: 2 });
   * console.log(status, reason, answer);
   * ```
   */
  result<Output = Json, OfTurn = never>(
    run: RunLike<Output>,
    options?: ResultOptions & { readonly turn?: number | TurnOf<OfTurn> },
  ): Promise<Outcome<[OfTurn] extends [never] ? Output : OfTurn>>;
  /**
   * Creates and manages schedules. Methods reject with a `NoScheduleError` (`no_schedule`) if
   * perdure has no schedule with this id.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const fixed = { agent: 'desk', message: 'Check the orders' };
   * await client.schedule.create({ ...fixed, id: 'nightly', cron: '0 3 * * *' });
   * ```
   */
  readonly schedule: Schedules;
  /**
   * Starts one run per task, some at the same time.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const files = ['a.txt', 'b.txt'];
   * const tasks = files.map((file) => `Summarize ${file}`);
   * for await (const { index, outcome } of client.batch('files', tasks, { id: 'summaries' })) {
   *   console.log(files[index], outcome.answer);
   * }
   * ```
   */
  batch<Output = Json, Args = unknown>(
    agent: AgentLike<Output, unknown, unknown, Args>,
    tasks: readonly BatchTask<NoInfer<Args>>[],
    options: BatchOptions<NoInfer<Args>>,
  ): RunBatch<Output>;
  /**
   * Closes the connection, unless `client` was given. Runs are not affected.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * const client = await createClient({ by: 'web session: ann' });
   * try {
   *   await client.send('desk-1', 'Is my order sent?');
   * } finally {
   *   await client.disconnect();
   * }
   * ```
   */
  disconnect(): Promise<void>;
  /** The same as `disconnect`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The values are checked where they are used. */
const checkedLater = z.unknown().optional();

const decision = {
  by: checkedLater,
  within: checkedLater,
  signal: checkedLater,
} satisfies OptionSchemas<DecisionOptions>;
const anyDecision = z.strictObject(decision);

const decisionOptions = {
  send: z.strictObject({
    ...decision,
    start: checkedLater,
  } satisfies OptionSchemas<SendOptions>),
  pause: anyDecision,
  resume: anyDecision,
  cancel: z.strictObject({
    ...decision,
    turn: expectedHidden(
      'true or the number of a turn, because only a turn is canceled with options',
      (turn) => turn === true || (Number.isInteger(turn) && Number(turn) > 0),
    ),
  } satisfies OptionSchemas<CancelOptions>),
  close: anyDecision,
  setLimits: anyDecision,
  resolve: z.strictObject({
    ...decision,
    id: checkedLater,
  } satisfies OptionSchemas<ResolveOptions>),
  revoke: anyDecision,
  undo: z.strictObject({ ...decision, call: checkedLater }),
} as const;

type DecisionMethod = keyof typeof decisionOptions;

/**
 * Returns a function that checks the options of a method and adds the client's actor, unless they
 * specify one. It throws an `InputError` for an option that the method does not have.
 */
export function withActor({ by, door }: ActorClaim) {
  return <Options extends DecisionOptions>(
    method: DecisionMethod,
    options?: Options,
  ): (Options | DecisionOptions) & ActorClaim => {
    if (options !== undefined) {
      checkOptions(method, { schema: decisionOptions[method], options });
    }
    // An interface verifies its own principal only.
    return options?.by === undefined ? { ...options, ...actorOf({ by, door }) } : options;
  };
}

/** Returns decisions as a program may make them. Anything but an object stays, to be refused. */
export function claimed<Given extends Decision | readonly Decision[]>(given: Given): Given {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a list stays a list
  return (Array.isArray(given) ? given.map(asClaim) : asClaim(given as Decision)) as Given;
}

function asClaim(made: Decision): Decision {
  return isObject(made) ? withoutDoor(made) : made;
}
