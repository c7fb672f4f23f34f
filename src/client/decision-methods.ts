import type { Decision, DecisionReceipt } from '../core/requests/decision.js';
import type { Request } from '../core/requests/request.js';
import type { DecisionOptions } from '../updates/control.js';
import type { ResolveOptions } from '../updates/decide.js';
import type { AllRunsOptions, AllRunsResult } from './signal-all.js';
import type { RequestFilter, RequestList } from './requests.js';
import type { RunLike } from './run-handle.js';

/** Selects open requests; a run is specified by its id or by the result of `start`. */
export interface OpenRequestFilter extends Omit<RequestFilter, 'root' | 'run'> {
  /** Only requests of this run, and of all runs that agents have called below it. */
  readonly root?: RunLike<unknown>;
  /** Only requests of this run. */
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
