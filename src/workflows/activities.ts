import {
  ActivityCancellationType,
  type ActivityOptions,
  proxyActivities,
  proxyLocalActivities,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities, ProbeActivities } from '../core/run/contract.js';
import type { ParentClose, ToolDefinition } from '../core/definition/tool-definition.js';
import { eventSummary } from '../core/run/details.js';
import { HEARTBEAT_MS, type RunConfig } from '../core/state/state.js';

// All timeouts and retries of activities. Only Temporal retries them.

const { ABANDON, WAIT_CANCELLATION_COMPLETED } = ActivityCancellationType;

/** The part of the SDK's state of a workflow that names the activities of its worker. */
interface Activator {
  readonly registeredActivityNames?: ReadonlySet<string>;
}
// oxlint-disable-next-line no-underscore-dangle -- the SDK's own name
declare const __TEMPORAL_ACTIVATOR__: Activator | undefined;

/** Whether this worker has an activity; true if the SDK does not show it. Differs between workers. */
export function hasActivity(name: keyof Activities): boolean {
  if (typeof __TEMPORAL_ACTIVATOR__ === 'undefined') return true;
  return __TEMPORAL_ACTIVATOR__.registeredActivityNames?.has(name) ?? true;
}

/** Returns a retry policy; its delay grows from `initialInterval` to `maximumInterval` ms. */
function backoff(initialInterval: number, maximumInterval: number, backoffCoefficient = 2) {
  return { initialInterval, backoffCoefficient, maximumInterval };
}

/** Backstop timeout of a model call. The worker's own timeouts end the call earlier. */
const MODEL_TIMEOUT_MS = 61 * 60_000;
/** Timeout of a closing call, after which a composed answer replaces it. */
const CLOSING_TIMEOUT_MS = 2 * 60_000;
/** Additional time for the worker to report a tool's own timeout. */
const TOOL_MARGIN_MS = 10_000;
/** Maximum attempts of an activity whose worker is lost each time. */
const LOST_ATTEMPTS = 10;

/** Loads the agent in the first workflow task, by a local activity because it is quick. */
export const loadAgentLocally = proxyLocalActivities<Pick<Activities, 'loadAgent'>>({
  startToCloseTimeout: 2_000,
  retry: { maximumAttempts: 1 },
}).loadAgent;

/** Lists the agents of the worker that executes the workflow task. */
export const { listPerdureAgents } = proxyLocalActivities<ProbeActivities>({
  startToCloseTimeout: 2_000,
  retry: { maximumAttempts: 1 },
});

/**
 * Returns the local activity that executes calls of inline tools within the workflow task. The worker
 * ends them after a fraction of this time, unless a call blocks its process. `summaries`: those of its
 * calls, for Temporal's UI.
 */
export function readsActivity(summaries: readonly string[]) {
  return proxyLocalActivities<Pick<Activities, 'runReads'>>({
    summary: eventSummary(summaries.join(', ')),
    startToCloseTimeout: 2_000,
    scheduleToCloseTimeout: 4_000,
    retry: { maximumAttempts: 1 },
  }).runReads;
}

/** Loads an agent that another worker may have. The run is blocked after the timeout. */
export const loadAgentOnAnyWorker = proxyActivities<Pick<Activities, 'loadAgent'>>({
  allowEagerDispatch: false,
  startToCloseTimeout: 5_000,
  scheduleToCloseTimeout: 2_000,
  retry: backoff(100, 400, 1.5),
}).loadAgent;

/** Loads an agent that no worker seems to have. It is retried indefinitely. */
export const loadAgentWhenAvailable = proxyActivities<Pick<Activities, 'loadAgent'>>({
  summary: 'find agent',
  allowEagerDispatch: false,
  startToCloseTimeout: 10_000,
  retry: backoff(2_000, 30_000),
}).loadAgent;

/** Loads an agent whose MCP servers must be started or reached before they list their tools. */
export const loadAgentWithMcp = proxyActivities<Pick<Activities, 'loadAgent'>>({
  summary: 'list MCP tools',
  startToCloseTimeout: 10 * 60_000,
  heartbeatTimeout: HEARTBEAT_MS,
  scheduleToCloseTimeout: 15 * 60_000,
  retry: { ...backoff(500, 15_000), maximumAttempts: 5 },
}).loadAgent;

/**
 * Writes messages to the archive and to the blob store. A store that is down is reported at once;
 * the retries are for a lost worker or a failed query.
 */
export const { archiveMessages } = proxyActivities<Pick<Activities, 'archiveMessages'>>({
  summary: 'archive messages',
  startToCloseTimeout: 30_000,
  scheduleToCloseTimeout: 60_000,
  retry: backoff(500, 10_000),
});

/** Options while a store is down. The activity waits, then fails and is retried. */
const WAITING_FOR_STORAGE = {
  startToCloseTimeout: 60_000,
  retry: backoff(500, 10_000),
} as const;

export const { archiveMessages: archiveMessagesBlocked } = proxyActivities<
  Pick<Activities, 'archiveMessages'>
>({ summary: 'archive messages', ...WAITING_FOR_STORAGE });

export const { forkMessages: forkMessagesBlocked } = proxyActivities<
  Pick<Activities, 'forkMessages'>
>({ summary: 'copy forked messages', ...WAITING_FOR_STORAGE });

export const { checkBlob } = proxyActivities<Pick<Activities, 'checkBlob'>>({
  summary: 'wait for storage',
  ...WAITING_FOR_STORAGE,
});

/** Loads an agent while the store refuses the run's context. */
export const loadAgentBlocked = proxyActivities<Pick<Activities, 'loadAgent'>>({
  summary: 'load agent',
  startToCloseTimeout: 10 * 60_000,
  heartbeatTimeout: HEARTBEAT_MS,
  scheduleToCloseTimeout: 60 * 60_000,
  retry: backoff(500, 10_000),
}).loadAgent;

/** Archives at the end of a run, with a short timeout so the outcome is not delayed. */
export const { archiveMessages: archiveMessagesAtEnd } = proxyActivities<
  Pick<Activities, 'archiveMessages'>
>({
  summary: 'archive',
  startToCloseTimeout: 5_000,
  scheduleToCloseTimeout: 10_000,
  retry: backoff(250, 2_000),
});

/** Archives at the end of a canceled run. A write may finish after the run has ended. */
export const { archiveMessages: archiveMessagesOnCancel } = proxyActivities<
  Pick<Activities, 'archiveMessages'>
>({
  summary: 'archive',
  startToCloseTimeout: 5_000,
  scheduleToCloseTimeout: 1_000,
  retry: backoff(100, 500),
});

/** Copies a whole run's messages into one blob, before the forked run starts its turn. */
export const { forkMessages } = proxyActivities<Pick<Activities, 'forkMessages'>>({
  summary: 'copy forked messages',
  startToCloseTimeout: 60_000,
  scheduleToCloseTimeout: 10 * 60_000,
  retry: backoff(500, 30_000),
});

/** Sends a message to a run. It is retried while the run is busy or has no worker. */
export const { askRun } = proxyActivities<Pick<Activities, 'askRun'>>({
  summary: 'send',
  startToCloseTimeout: 45_000,
  scheduleToCloseTimeout: 60 * 60_000,
  retry: backoff(1_000, 60_000),
});

/** Sends a notice about a request. It is retried for a day. */
export const { notifyRequest } = proxyActivities<Pick<Activities, 'notifyRequest'>>({
  summary: 'notify',
  startToCloseTimeout: 30_000,
  scheduleToCloseTimeout: 24 * 60 * 60_000,
  retry: backoff(1_000, 10 * 60_000),
});

/** Checks a person's decision. It is retried if its worker is lost. */
export const { checkDecision } = proxyActivities<Pick<Activities, 'checkDecision'>>({
  summary: 'check decision',
  startToCloseTimeout: 60_000,
  scheduleToCloseTimeout: 10 * 60_000,
  heartbeatTimeout: HEARTBEAT_MS,
  retry: backoff(500, 30_000),
});

/** Five years: a called agent may work, or wait for a person, for any length of time. */
const FOLLOW_TIMEOUT_MS = 5 * 365 * 24 * 60 * 60_000;

/** Follows a called agent. `taskQueue` is the agent's queue if it differs from the caller's. */
export function followActivity(options: {
  summary: string;
  close: ParentClose;
  taskQueue?: string | undefined;
}) {
  const { summary, close, taskQueue } = options;
  return proxyActivities<Pick<Activities, 'followRun'>>({
    summary: eventSummary(summary),
    ...(taskQueue !== undefined && { taskQueue }),
    startToCloseTimeout: FOLLOW_TIMEOUT_MS,
    heartbeatTimeout: HEARTBEAT_MS,
    cancellationType: close === 'abandon' ? ABANDON : WAIT_CANCELLATION_COMPLETED,
    retry: backoff(500, 30_000),
  }).followRun;
}

/**
 * Returns the share of the run's tenant. Activities inherit it, but a worker is not told, and its metrics
 * name the tenant.
 */
function shareOfRun(): Pick<ActivityOptions, 'priority'> {
  const { fairnessKey } = workflowInfo().priority ?? {};
  return fairnessKey === undefined ? {} : { priority: { fairnessKey } };
}

/**
 * A model call. `closing`: the call that ends a turn at a limit. `anywhere`: it is a probe, which
 * another worker should get.
 */
export function modelActivity(
  { heartbeatMs = HEARTBEAT_MS }: RunConfig,
  options: { summary: string; closing: boolean; anywhere: boolean },
) {
  return proxyActivities<Pick<Activities, 'callModel'>>({
    summary: eventSummary(options.summary),
    ...shareOfRun(),
    ...(options.anywhere && { allowEagerDispatch: false }),
    startToCloseTimeout: MODEL_TIMEOUT_MS,
    heartbeatTimeout: heartbeatMs,
    ...(options.closing && { scheduleToCloseTimeout: CLOSING_TIMEOUT_MS }),
    cancellationType: WAIT_CANCELLATION_COMPLETED,
    retry: backoff(500, 30_000),
  }).callModel;
}

/** Additional time to read the prompt and to offload documents. */
const FUNCTION_MARGIN_MS = 60_000;

/** The activities that call the agent's own `retrieve` and `remember` functions. */
export function functionActivities(
  summary: 'retrieve' | 'remember',
  { definition, heartbeatMs = HEARTBEAT_MS }: RunConfig,
) {
  const { timeoutMs } = definition[summary] ?? { timeoutMs: 0 };
  return proxyActivities<Pick<Activities, 'retrieveDocuments' | 'rememberTurn'>>({
    summary,
    startToCloseTimeout: timeoutMs + FUNCTION_MARGIN_MS,
    heartbeatTimeout: heartbeatMs,
    cancellationType: WAIT_CANCELLATION_COMPLETED,
    retry: { ...backoff(500, 30_000, 3), maximumAttempts: LOST_ATTEMPTS },
  });
}

/** Returns a tool call's activity. `anywhere`: turns eager dispatch to this worker off. */
export function toolActivity(tool: ToolDefinition, summary: string, anywhere = false) {
  return proxyActivities<Pick<Activities, 'runTool'>>({
    summary: eventSummary(summary),
    ...shareOfRun(),
    ...(anywhere && { allowEagerDispatch: false }),
    startToCloseTimeout: tool.timeoutMs + TOOL_MARGIN_MS,
    heartbeatTimeout: tool.heartbeatMs,
    cancellationType: WAIT_CANCELLATION_COMPLETED,
    retry:
      tool.effect === 'once'
        ? { maximumAttempts: 1 }
        : { ...backoff(250, 30_000), maximumAttempts: Math.max(LOST_ATTEMPTS, tool.attempts) },
  }).runTool;
}

/**
 * Finds a worker that has the tool of a blocked call, without executing the call. It is therefore
 * retried indefinitely, regardless of the tool's effect, and each attempt may reach another worker.
 */
export function findActivity(summary: string) {
  return proxyActivities<Pick<Activities, 'runTool'>>({
    summary: eventSummary(`find ${summary}`),
    allowEagerDispatch: false,
    startToCloseTimeout: 60_000,
    heartbeatTimeout: HEARTBEAT_MS,
    cancellationType: WAIT_CANCELLATION_COMPLETED,
    retry: backoff(2_000, 30_000),
  }).runTool;
}

/** A call of a tool's `undo` function: attempted as often as the tool itself. */
export function undoActivity(tool: ToolDefinition, summary: string) {
  return functionActivity(tool, summary, tool.effect === 'once' ? 1 : tool.attempts);
}

/** A call of a tool's `verify` function. */
export function functionActivity(tool: ToolDefinition, summary: string, attempts = 5) {
  return proxyActivities<Pick<Activities, 'runFunction'>>({
    summary: eventSummary(summary),
    startToCloseTimeout: tool.timeoutMs + TOOL_MARGIN_MS,
    heartbeatTimeout: tool.heartbeatMs,
    cancellationType: WAIT_CANCELLATION_COMPLETED,
    retry: { ...backoff(500, 10_000), maximumAttempts: attempts },
  }).runFunction;
}
