import type { Client } from '@temporalio/client';
import type { Typed } from '../core/definition/output-type.js';
import type { Archive } from '../storage/archive.js';
import type { BlobStore } from '../storage/blob-store.js';
import type { ConnectionSettings } from '../temporal/connection.js';
import type { Resolution } from '../core/calls/call-result.js';
import type { Limits } from '../core/definition/definition.js';
import type { Ask } from '../core/inbox.js';
import type { Json } from '../core/json.js';
import type { Attachment } from '../core/transcript/messages.js';
import type { Outcome } from '../core/outcome.js';
import type { EffectiveLimits } from '../core/state.js';
import type { RunStatus } from '../core/status.js';
import type { StreamOptions } from '../live/run-streams.js';
import type { StreamEvent } from '../live/stream-events.js';
import type { AttachOptions } from './attach.js';
import type { Batch, BatchOptions, BatchTask } from './batch.js';
import type { SentMessage } from '../updates/deliver-or-record.js';
import type { DecisionOptions } from '../updates/control.js';
import type { EventsOptions } from '../history/follow-events.js';
import type { ForkOptions } from './fork-run.js';
import type { ListFilter, RunList } from './list.js';
import type { ResultOptions } from './result.js';
import type { DurableEvent } from '../history/durable-events.js';
import type { AgentLike, RunSettings } from '../updates/run-input.js';
import type { RunTranscript } from '../history/run-transcript.js';
import type { Schedules } from './schedule/schedule.js';
import type { TranscriptRange } from '../history/transcript.js';

export interface ClientOptions extends ConnectionSettings {
  /** Of the workers; default PERDURE_TASK_QUEUE, else `perdure`. */
  readonly taskQueue?: string;
  /** Where addresses, keys and PERDURE_HOME are read from; default: the process's own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A client of Temporal's SDK that exists; it stays open when this one is closed. */
  readonly client?: Client;
  /** PERDURE_HOME of the workers, for archive and attachments; default: the environment's, else `.perdure`. */
  readonly home?: string;
  /** Default: files below `home`. */
  readonly archive?: Archive;
  /** Where attachments go, the same as that of the workers; default: files below `home`. */
  readonly blobs?: BlobStore;
  /**
   * Who talks to runs by this client: recorded with each message and decision, and not verified. 1 to 200
   * characters that name their source, too, such as `web session: ann`.
   */
  readonly by?: string;
}

export interface StartOptions extends RunSettings {
  /** Needed, but for an open run that is told later. */
  readonly message?: string;
  /** Sent along with the message: images by address, and what `attach` gave. */
  readonly attachments?: readonly Attachment[];
  /** Names the run for ever; default: made of the agent's name, the day and some letters. */
  readonly id?: string;
  /** Wait for more messages after a turn instead of ending. */
  readonly open?: boolean;
}

/** A run that was started, with the type of its agent's output. */
export interface RunHandle<Output = Json> extends Typed<Output> {
  readonly id: string;
  /** Of the first segment. */
  readonly runId: string;
}

/** A run: what `start` gave, or its id. */
export type RunLike<Output = Json> = string | (Typed<Output> & { readonly id: string });

export interface AskOptions extends DecisionOptions {
  /** What to start where there is no run of this id: an open one, in one call with the message. */
  readonly start?: RunSettings & { readonly agent: AgentLike<unknown> };
}

/**
 * Starts runs, talks to them and reads them. Reading and waiting need no worker; what is said to a run
 * does: it rejects with a `RefusedError` where the run refused it, and with a `NotDeliveredError` where no
 * answer came. Where there is no such run, methods reject with a `NoRunError` or a `RefusedError`, and
 * for malformed input with an `InputError`.
 */
export interface PerdureClient {
  /** Rejects with an `IdTakenError` where there is or was a run of this id. */
  start<Output = Json>(agent: AgentLike<Output>, options: StartOptions): Promise<RunHandle<Output>>;
  /** Keeps bytes where the workers find them, for the `attachments` of a message. */
  attach(bytes: Uint8Array, options?: AttachOptions): Promise<Attachment>;
  /**
   * Starts a run that begins with the messages of another one, before number `at`; that one is left as
   * it is. The agent is loaded as it is now. Rejects with an `IdTakenError`.
   */
  fork<Output = Json>(
    run: RunLike<Output>,
    options: ForkOptions<Output>,
  ): Promise<RunHandle<Output>>;
  /**
   * Gives an open run a message; answered when the run has it, with the turn that it belongs to. The
   * same `id` of a message again is the same message. A run that has ended is never started afresh.
   * It is tried for a minute, or `withinMs`. While no worker is there the message is recorded:
   * `delivered` is false, a worker takes it when one comes, and what it refuses appears in the status.
   */
  ask(run: RunLike<unknown>, message: string | Ask, options?: AskOptions): Promise<SentMessage>;
  /** Waits for the end of a turn; its outcome is a value, whatever its status. */
  result<Output = Json>(run: RunLike<Output>, options?: ResultOptions): Promise<Outcome<Output>>;
  status(run: RunLike<unknown>): Promise<RunStatus>;
  transcript(run: RunLike<unknown>, range?: TranscriptRange): Promise<RunTranscript>;
  /** Durable steps, past and to come; ends with the run. */
  events(run: RunLike<unknown>, options?: EventsOptions): AsyncIterable<DurableEvent>;
  /**
   * Durable steps, and between them what models say while they say it, as far as workers tell that and
   * share PERDURE_HOME with this client. Many readers of a run cost hardly more than one.
   */
  stream(run: RunLike<unknown>, options?: StreamOptions): AsyncIterable<StreamEvent>;
  /** The newest runs that fit; default 50 at most. */
  list(wish?: Partial<ListFilter>): Promise<RunList>;
  /** Lets what is in flight finish and starts nothing more. */
  pause(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /** Lets a blocked or paused run go on at once. */
  resume(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /** Asks Temporal to cancel the run, and resolves when that is asked for; one that has ended stays so. */
  cancel(run: RunLike<unknown>): Promise<void>;
  /** Ends the turn under way. @returns its number */
  cancelTurn(
    run: RunLike<unknown>,
    options?: DecisionOptions & { readonly turn?: number },
  ): Promise<number>;
  /** An open run takes no more messages, and ends with those that it has. */
  close(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /** Replaces the named limits. @returns all as they are now */
  setLimits(
    run: RunLike<unknown>,
    limits: Limits,
    options?: DecisionOptions,
  ): Promise<EffectiveLimits>;
  /** Settles a call whose outcome is unknown. */
  resolve(run: RunLike<unknown>, resolution: Resolution, options?: DecisionOptions): Promise<void>;
  readonly schedule: Schedules;
  /** One run per task, some at once. */
  batch<Output = Json>(
    agent: AgentLike<Output>,
    tasks: readonly BatchTask[],
    options: BatchOptions,
  ): Batch<Output>;
  /** Closes the connection, unless it was given. Runs do not notice. */
  disconnect(): Promise<void>;
  /** The same as `disconnect`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
