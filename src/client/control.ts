import { randomUUID } from 'node:crypto';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { LimitOptions } from '../core/definition/definition.js';
import type { Typed, TypedPrompts } from '../core/definition/agent-types.js';
import { InputError } from '../core/errors.js';
import { cancelReason } from '../history/decode-event.js';
import { describeRun } from '../history/read-run.js';
import { GRPC, grpcCode } from '../temporal/grpc.js';
import type { EffectiveLimits } from '../core/state/state.js';
import type { Json } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Decision, DecisionReceipt, Request } from '../core/transcript/request.js';
import { type DecisionOptions, type ResolveOptions, claim } from '../updates/decide.js';
import { assertOptionNames } from '../validation/option-names.js';
import { type ActorClaim, pauseSignal, resumeSignal } from '../workflows/messages/definitions.js';
import type { RequestFilter, RequestList } from './requests.js';
import { queryTerm, readRunRow, withoutAttributes } from './run-row.js';

/** A run that was started, with the type of its agent's output. */
export interface RunHandle<Output = Json, Prompts = unknown>
  extends Typed<Output>, TypedPrompts<Prompts> {
  readonly id: string;
  /** Run id of the first segment. */
  readonly runId: string;
}

/** A run: the result of `start`, or its id. */
export type RunLike<Output = Json, Prompts = unknown> =
  | string
  | (Typed<Output> & TypedPrompts<Prompts> & { readonly id: string });

/** Options of `cancel` for a turn: which one, who decides, and how long to try. */
export interface CancelOptions extends DecisionOptions {
  /** The number of the turn; `true` is the current one. */
  readonly turn: number | true;
}

/** The part of a client that controls runs. */
export interface ControlMethods {
  /**
   * Pauses a run: work in flight finishes, and nothing more is started.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.pause('desk-1', { by: 'ops: ann' });
   * ```
   */
  pause(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /**
   * Lets a blocked or paused run continue at once.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.resume('desk-1', { by: 'ops: ann' });
   * ```
   */
  resume(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /**
   * Requests that Temporal cancel the run, under the client's `by`. Has no effect on a run that has ended.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.cancel('desk-1');
   * console.log((await client.result('desk-1')).status);
   * ```
   */
  cancel(run: RunLike<unknown>): Promise<void>;
  /**
   * Cancels a turn of an open run, which then waits for its next message. `turn: true` is the
   * current turn; with a number, only that turn, so a late request does not cancel the next one.
   * Returns the number of the turn.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const turn = await client.cancel('desk-1', { turn: true });
   * console.log(`turn ${turn} was canceled`);
   * ```
   */
  cancel(run: RunLike<unknown>, options: CancelOptions): Promise<number>;
  /**
   * Closes an open run: it accepts no more messages and ends after those that it already has.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.close('desk-1');
   * ```
   */
  close(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /**
   * Replaces the given limits and returns all limits after the change. A run that waits at a limit
   * resumes if the new limits allow it. Where workers have `mayDecide`, that takes a decision:
   * `client.resolve` with `as: 'raise'`.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { run } = await client.setLimits('desk-1', { run: { costUsd: 5 } });
   * console.log(run.costUsd);
   * ```
   */
  setLimits(
    run: RunLike<unknown>,
    limits: LimitOptions,
    options?: DecisionOptions,
  ): Promise<EffectiveLimits>;
}

/** Which runs to pause or resume, and who does so. */
export interface AllRunsOptions extends Pick<ActorClaim, 'by'> {
  /** The agent's name. */
  readonly agent: string;
  /** A callback that is called after each run. Default: none. */
  readonly onProgress?: (progress: AllRunsProgress) => void;
  /** Ends the operation early. The signals that were already sent take effect. Default: none. */
  readonly signal?: AbortSignal;
}

const ALL_RUNS_NAMES = { agent: true, by: true, onProgress: true, signal: true } as const;

/** The number of runs that were signaled to pause or to resume. */
export interface AllRunsProgress {
  /** Runs for which the server has recorded the signal. */
  readonly signaled: number;
  /** Runs that ended in the meantime. */
  readonly ended: number;
  /** Runs that the server could not signal, or whose agent could not be read; they do not change. */
  readonly failed: number;
}

/** How `pauseAll` or `resumeAll` ended. */
export interface AllRunsResult extends AllRunsProgress {
  /** The first error of a run that could not be signaled; null if there was none. */
  readonly error: string | null;
}

const AT_ONCE = 20;

/** The signals that every running run of an agent can get. */
const SIGNALS = { pause: pauseSignal, resume: resumeSignal } as const;

/**
 * Signals every running run of an agent to pause or to resume. The server records the signals even
 * while no worker runs, and they take effect when a worker picks up the run. A run that starts later
 * gets none. Rejects with an `InputError` if an option is invalid, and if the server does not list
 * the runs.
 */
export async function signalAllRuns(
  client: Client,
  what: keyof typeof SIGNALS,
  options: AllRunsOptions,
): Promise<AllRunsResult> {
  assertOptionNames<AllRunsOptions>(options, ALL_RUNS_NAMES, `${what}All`);
  const { agent, by, onProgress, signal } = options;
  if (typeof agent !== 'string' || agent === '') {
    throw new InputError(`agent: expected the name of an agent, got ${show(agent)}`);
  }
  const actor = claim(by);
  const count = { signaled: 0, ended: 0, failed: 0 };
  let error: string | null = null;
  const signalOne = async (id: string): Promise<void> => {
    try {
      await client.workflow.getHandle(id).signal(SIGNALS[what], actor);
      count.signaled += 1;
    } catch (reason) {
      if (reason instanceof WorkflowNotFoundError) count.ended += 1;
      else {
        count.failed += 1;
        error ??= reason instanceof Error ? reason.message : String(reason);
      }
    }
    onProgress?.({ ...count });
  };
  const skip = (why: string): void => {
    count.failed += 1;
    error ??= why;
    onProgress?.({ ...count });
  };
  await forEachAtOnce(runningIds(client, agent, skip), signalOne, signal);
  return { ...count, error };
}

/**
 * Yields each run once: the server may list a run twice if it continues in a new segment during the
 * listing. `skip` is called for a run whose agent cannot be read.
 */
async function* runningIds(
  client: Client,
  agent: string,
  skip: (why: string) => void,
): AsyncGenerator<string, void, undefined> {
  const running = `WorkflowType = 'agent' AND ExecutionStatus = 'Running'`;
  const seen = new Set<string>();
  const infos = withoutAttributes(client, {
    // A run has no attributes before its agent is loaded; such runs are also paused.
    query: `${running} AND (${queryTerm('AgentName', agent)} OR AgentName IS NULL)`,
    // Without search attributes, each run must be read to find its agent.
    otherwise: running,
  });
  for await (const found of infos) {
    const { info, byAttributes } = found;
    if (seen.has(info.workflowId)) continue;
    seen.add(info.workflowId);
    const [named] = byAttributes ? (info.searchAttributes['AgentName'] ?? []) : [];
    if (named === undefined) {
      const row = await readRunRow(client, found);
      if (row.agent === agent) yield row.id;
      else if (row.agent === null && row.unreadable !== undefined) skip(row.unreadable);
    } else if (named === agent) {
      yield info.workflowId;
    }
  }
}

/** Calls `work`, which never rejects, for each item, at most `AT_ONCE` at the same time. */
async function forEachAtOnce<T>(
  items: AsyncGenerator<T, void, undefined>,
  work: (item: T) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  // A generator queues concurrent calls of `next`, so the workers share it.
  const worker = async (): Promise<void> => {
    for await (const item of { [Symbol.asyncIterator]: () => ({ next: () => items.next() }) }) {
      signal?.throwIfAborted();
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Selects open requests; a run is specified by its id or by the result of `start`. */
export interface OpenRequestFilter extends Omit<RequestFilter, 'root' | 'run'> {
  /**
   * Only requests of this run, and of all runs that agents have called below it. Default: any run.
   */
  readonly root?: RunLike<unknown>;
  /** Only requests of this run. Default: any run. */
  readonly run?: RunLike<unknown>;
}

/** The part of a client that reads requests and decides about them. */
export interface DecisionMethods {
  /**
   * Returns all open requests, oldest first, with one query. Needs no worker. `shown` has at most
   * 300 characters; read the whole request with `request` before you decide.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { requests } = await client.requests({ agent: 'desk' });
   * for (const { run, id, kind, shown } of requests) console.log(run, id, kind, shown);
   * ```
   */
  requests(filter?: OpenRequestFilter): Promise<RequestList>;
  /**
   * Returns an open request with all arguments, and the digest to pass with a decision. Needs no
   * worker. Rejects with a `BlobError` (`blob`) if the arguments are in the blob store and cannot
   * be read.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { shown, why, digest } = await client.request('desk-1', 'r1');
   * console.log(shown, why, digest);
   * ```
   */
  request(run: RunLike<unknown>, id: string): Promise<Request>;
  /**
   * Decides about requests: all of the decisions are accepted, or none is. A decision applies only
   * to what its digest covers, and the first one wins. If it is refused, the `RefusedError` has the
   * `reason`.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient({ by: 'web session: ann' });
   * const { id, digest, shown } = await client.request('desk-1', 'r1');
   * console.log(shown);
   * await client.resolve('desk-1', { request: id, digest, as: 'approve' });
   * ```
   */
  resolve(
    run: RunLike<unknown>,
    decisions: Decision | readonly Decision[],
    options?: ResolveOptions,
  ): Promise<readonly DecisionReceipt[]>;
  /**
   * Revokes a grant, so that later calls ask again, and returns its id. The status lists the
   * grants.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { grants = [] } = await client.status('desk-1');
   * for (const { id } of grants) await client.revoke('desk-1', id, { by: 'ops: ann' });
   * ```
   */
  revoke(run: RunLike<unknown>, grant: string, options?: DecisionOptions): Promise<string>;
  /**
   * Undoes a call with its tool's `undo`: the specified call, or else the last one that can be
   * undone. Returns the call's id when the run has started to undo it; the status shows the result.
   * Without a call, it is refused while another undo is open, and the error names that one.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const call = await client.undo('desk-1', { by: 'ops: ann' });
   * const { undoable = [] } = await client.status('desk-1');
   * console.log(undoable.find((one) => one.call === call)?.state);
   * ```
   */
  undo(
    run: RunLike<unknown>,
    options?: DecisionOptions & { readonly call?: string },
  ): Promise<string>;
  /**
   * Signals every running run of an agent to pause. Needs no worker: each run pauses as soon as a
   * worker picks it up. A run that starts later is not paused.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { signaled, failed } = await client.pauseAll({ agent: 'desk', by: 'ops: ann' });
   * console.log(`${signaled} runs pause, ${failed} could not be signaled`);
   * ```
   */
  pauseAll(options: AllRunsOptions): Promise<AllRunsResult>;
  /**
   * Signals every running run of an agent to resume: a paused run continues, a blocked one tries
   * again at once, and any other does not change. Needs no worker, like `pauseAll`.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { signaled, failed } = await client.resumeAll({ agent: 'desk', by: 'ops: ann' });
   * console.log(`${signaled} runs were signaled, ${failed} could not be`);
   * ```
   */
  resumeAll(options: AllRunsOptions): Promise<AllRunsResult>;
}

/**
 * Requests that Temporal cancel a run; has no effect if the run has ended or ends in the meantime. `by`:
 * who requests it, for its history.
 */
export async function cancelRun(client: Client, id: string, by?: string): Promise<void> {
  await describeRun(client, id);
  await requestCancel(client, id, by);
}

/**
 * Requests that Temporal cancel a run, and records who does so. Returns whether the server has an open run
 * with this id. The SDK sends no reason.
 */
export async function requestCancel(client: Client, id: string, by?: string): Promise<boolean> {
  const { namespace, identity } = client.options;
  const request = {
    namespace,
    identity,
    requestId: randomUUID(),
    workflowExecution: { workflowId: id },
    ...(by !== undefined && { reason: cancelReason(by) }),
  };
  try {
    await client.workflowService.requestCancelWorkflowExecution(request);
    return true;
  } catch (error) {
    if (grpcCode(error) !== GRPC.notFound) throw error;
    return false;
  }
}
