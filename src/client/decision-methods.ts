import type { Client } from '@temporalio/client';
import { toLimits } from '../core/input/limits.js';
import { isObject } from '../core/text/json.js';
import type { Decision } from '../core/transcript/request.js';
import type { BlobStore } from '../storage/blob-store.js';
import {
  cancelTurn,
  closeRun,
  pauseRun,
  requestUndo,
  resumeRun,
  revokeGrant,
  setLimits,
} from '../updates/decide.js';
import { claimed, type withActor } from './client-types.js';
import {
  type CancelOptions,
  type ControlMethods,
  type DecisionMethods,
  type OpenRequestFilter,
  type RunLike,
  cancelRun,
  signalAllRuns,
} from './control.js';
import { type OptionNames, assertOptionNames } from '../validation/option-names.js';
import { type RequestFilter, listRequests, readRequest } from './requests.js';
import { resolveOpen } from './resolve.js';
import { storedId } from './run-ids.js';
import { type Runnable, runnableFix, runnableList } from './runnable-texts.js';

const FILTER_NAMES = { agent: true, root: true, run: true } as const;

/** A misspelled `actions` or `where` would let a run execute more than a person wanted. */
const DECISION_NAMES: OptionNames<Omit<Decision, 'patched'>> = {
  request: true,
  digest: true,
  as: true,
  arguments: true,
  actions: true,
  result: true,
  note: true,
  grant: true,
  by: true,
  door: true,
  groups: true,
};
const GRANT_NAMES = { scope: true, where: true } as const;

/** Throws an `InputError` for a field that a decision does not have. Anything but an object is refused later. */
function assertDecisionNames(given: Decision | readonly Decision[]): void {
  for (const [index, made] of [given].flat().entries()) {
    if (!isObject(made)) continue;
    const place = Array.isArray(given) ? `decisions[${index}]` : 'decision';
    assertOptionNames(made, DECISION_NAMES, place);
    if (isObject(made.grant)) assertOptionNames(made.grant, GRANT_NAMES, `${place}.grant`);
  }
}

type WithBy = ReturnType<typeof withActor>;

/** Returns the methods that control runs. */
export function controlMethods(client: Client, withBy: WithBy): ControlMethods {
  function cancel(run: RunLike<unknown>): Promise<void>;
  function cancel(run: RunLike<unknown>, options: CancelOptions): Promise<number>;
  async function cancel(run: RunLike<unknown>, options?: CancelOptions): Promise<number | void> {
    if (options === undefined) {
      return await cancelRun(client, await storedId(client, run), withBy('cancel').by);
    }
    const { turn, ...rest } = { ...options, ...withBy('cancel', options) };
    const id = await storedId(client, run);
    return await cancelTurn(client, id, { ...rest, ...(turn !== true && { turn }) });
  }
  return {
    async pause(run, options) {
      const how = withBy('pause', options);
      await pauseRun(client, await storedId(client, run), how);
    },
    async resume(run, options) {
      const how = withBy('resume', options);
      await resumeRun(client, await storedId(client, run), how);
    },
    cancel,
    async close(run, options) {
      const how = withBy('close', options);
      await closeRun(client, await storedId(client, run), how);
    },
    async setLimits(run, limits, options) {
      const [checked, how] = [toLimits(limits), withBy('setLimits', options)];
      return await setLimits(client, await storedId(client, run), checked, how);
    },
  };
}

/**
 * Returns the methods that show and decide requests. `by`: whose client it is. `runnable`: makes the
 * command of a request runnable.
 */
export function decisionMethods(
  client: Client,
  {
    withBy,
    by,
    blobs,
    runnable,
  }: {
    readonly withBy: WithBy;
    readonly by: string | undefined;
    readonly blobs: BlobStore;
    readonly runnable: Runnable;
  },
): DecisionMethods {
  return {
    requests: async (filter = {}) => {
      assertOptionNames<OpenRequestFilter>(filter, FILTER_NAMES, 'requests');
      return runnableList(await listRequests(client, await storedFilter(client, filter)), runnable);
    },
    request: async (run, id) => {
      const request = await readRequest(client, { run: await storedId(client, run), id }, blobs);
      return runnableFix(request, runnable);
    },
    resolve: async (run, decisions, options) => {
      assertDecisionNames(decisions);
      const [made, how] = [claimed(decisions), withBy('resolve', options)];
      return await resolveOpen(client, await storedId(client, run), made, how);
    },
    revoke: async (run, grant, options) => {
      const how = withBy('revoke', options);
      return await revokeGrant(client, await storedId(client, run), grant, how);
    },
    undo: async (run, options) => {
      const how = withBy('undo', options);
      return await requestUndo(client, await storedId(client, run), how);
    },
    pauseAll: (options) => signalAllRuns(client, 'pause', { ...(by && { by }), ...options }),
    resumeAll: (options) => signalAllRuns(client, 'resume', { ...(by && { by }), ...options }),
  };
}

/** Returns a filter of requests with the ids of its runs, as the server has them. */
export async function storedFilter(
  client: Client,
  { agent, root, run }: OpenRequestFilter,
): Promise<RequestFilter> {
  return {
    agent,
    ...(root !== undefined && { root: await storedId(client, root) }),
    ...(run !== undefined && { run: await storedId(client, run) }),
  };
}
