import {
  ActivityCancellationType,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { Activities } from '../core/contract.js';
import type { ParentClose, ToolDefinition } from '../core/definition/definition.js';
import { eventSummary } from '../core/text/markdown.js';
import { HEARTBEAT_MS, type RunConfig } from '../core/state.js';

// All timeouts and retries of the product stand here. Temporal is the only one that retries.

/** A model call: the worker's own clocks end it before, this is the backstop. */
const MODEL_TIMEOUT_MS = 61 * 60_000;
/** A closing call that does not come back in this time is given up for a composed answer. */
const CLOSING_TIMEOUT_MS = 2 * 60_000;
/** Beyond a tool's own timeout, which the worker enforces: room to report it. */
const TOOL_MARGIN_MS = 10_000;
/** A tool that takes its worker down with it is not tried for ever. */
const LOST_ATTEMPTS = 10;

/** Argument-fed and quick, so it may run inside the first workflow task. */
export const loadAgentHere = proxyLocalActivities<Pick<Activities, 'loadAgent'>>({
  startToCloseTimeout: 2_000,
  retry: { maximumAttempts: 1 },
}).loadAgent;

/** For an agent that this worker does not know: another one may. After this time the run is blocked. */
export const loadAgentAnywhere = proxyActivities<Pick<Activities, 'loadAgent'>>({
  allowEagerDispatch: false,
  startToCloseTimeout: 5_000,
  scheduleToCloseTimeout: 2_000,
  retry: { initialInterval: 100, backoffCoefficient: 1.5, maximumInterval: 400 },
}).loadAgent;

/** For an agent that no worker seems to know: looked for without end, and without further events. */
export const loadAgentSomeday = proxyActivities<Pick<Activities, 'loadAgent'>>({
  summary: 'find agent',
  allowEagerDispatch: false,
  startToCloseTimeout: 10_000,
  retry: { initialInterval: 2_000, backoffCoefficient: 2, maximumInterval: 30_000 },
}).loadAgent;

/** For an agent whose MCP servers have to be started or reached, and asked for their tools. */
export const loadAgentPatiently = proxyActivities<Pick<Activities, 'loadAgent'>>({
  summary: 'list MCP tools',
  startToCloseTimeout: 10 * 60_000,
  heartbeatTimeout: HEARTBEAT_MS,
  scheduleToCloseTimeout: 15 * 60_000,
  retry: {
    initialInterval: 500,
    backoffCoefficient: 2,
    maximumInterval: 15_000,
    maximumAttempts: 5,
  },
}).loadAgent;

/**
 * Short work on files. A store that is down is reported at once; what is retried here is a worker
 * that was lost, or a query that failed.
 */
export const { keepMessages } = proxyActivities<Pick<Activities, 'keepMessages'>>({
  summary: 'keep messages',
  startToCloseTimeout: 30_000,
  scheduleToCloseTimeout: 60_000,
  retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 10_000 },
});

/** Work on a store that is down, which a blocked run waits for: the worker sets the pace. */
const WAITING_FOR_STORAGE = {
  startToCloseTimeout: 60_000,
  retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 10_000 },
} as const;

export const { keepMessages: keepMessagesBlocked } = proxyActivities<
  Pick<Activities, 'keepMessages'>
>({ summary: 'keep messages', ...WAITING_FOR_STORAGE });

export const { forkMessages: forkMessagesBlocked } = proxyActivities<
  Pick<Activities, 'forkMessages'>
>({ summary: 'fork', ...WAITING_FOR_STORAGE });

export const { checkBlob } = proxyActivities<Pick<Activities, 'checkBlob'>>({
  summary: 'wait for storage',
  ...WAITING_FOR_STORAGE,
});

/** For an agent that is known, whose run's context the store did not take. */
export const loadAgentBlocked = proxyActivities<Pick<Activities, 'loadAgent'>>({
  summary: 'load agent',
  startToCloseTimeout: 10 * 60_000,
  heartbeatTimeout: HEARTBEAT_MS,
  scheduleToCloseTimeout: 60 * 60_000,
  retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 10_000 },
}).loadAgent;

/** At the end of a run: nobody waits long for an archive that is down. */
export const { keepMessages: keepMessagesBriefly } = proxyActivities<
  Pick<Activities, 'keepMessages'>
>({
  summary: 'archive',
  startToCloseTimeout: 5_000,
  scheduleToCloseTimeout: 10_000,
  retry: { initialInterval: 250, backoffCoefficient: 2, maximumInterval: 2_000 },
});

/** At the end of a run that was cancelled: a write that is under way then goes on without the run. */
export const { keepMessages: keepMessagesAtOnce } = proxyActivities<
  Pick<Activities, 'keepMessages'>
>({
  summary: 'archive',
  startToCloseTimeout: 5_000,
  scheduleToCloseTimeout: 1_000,
  retry: { initialInterval: 100, backoffCoefficient: 2, maximumInterval: 500 },
});

/** Reads a whole run and writes one blob, before the run that wants it says anything. */
export const { forkMessages } = proxyActivities<Pick<Activities, 'forkMessages'>>({
  summary: 'fork',
  startToCloseTimeout: 60_000,
  scheduleToCloseTimeout: 10 * 60_000,
  retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 30_000 },
});

/** A run that is busy, or whose worker is away, is given time; one that is over is not. */
export const { askRun } = proxyActivities<Pick<Activities, 'askRun'>>({
  summary: 'send',
  startToCloseTimeout: 45_000,
  scheduleToCloseTimeout: 60 * 60_000,
  retry: { initialInterval: 1_000, backoffCoefficient: 2, maximumInterval: 60_000 },
});

/** A called agent may work, or wait for a person, for as long as it likes. */
const FOLLOW_TIMEOUT_MS = 5 * 365 * 24 * 60 * 60_000;

/** `taskQueue` is where the called agent runs, if that is not the caller's queue. */
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
    cancellationType:
      close === 'abandon'
        ? ActivityCancellationType.ABANDON
        : ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 30_000 },
  }).followRun;
}

export function modelActivity(
  { heartbeatMs = HEARTBEAT_MS }: RunConfig,
  options: { summary: string; closing: boolean },
) {
  return proxyActivities<Pick<Activities, 'callModel'>>({
    summary: eventSummary(options.summary),
    startToCloseTimeout: MODEL_TIMEOUT_MS,
    heartbeatTimeout: heartbeatMs,
    ...(options.closing && { scheduleToCloseTimeout: CLOSING_TIMEOUT_MS }),
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 30_000 },
  }).callModel;
}

/** Beyond the function's own time, which the worker keeps: to read the prompt and to keep the documents. */
const RETRIEVE_MARGIN_MS = 60_000;

export function retrieveActivity({ definition, heartbeatMs = HEARTBEAT_MS }: RunConfig) {
  const { timeoutMs } = definition.retrieve ?? { timeoutMs: 0 };
  return proxyActivities<Pick<Activities, 'retrieveDocuments'>>({
    summary: 'retrieve',
    startToCloseTimeout: timeoutMs + RETRIEVE_MARGIN_MS,
    heartbeatTimeout: heartbeatMs,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: {
      initialInterval: 500,
      backoffCoefficient: 3,
      maximumInterval: 30_000,
      maximumAttempts: LOST_ATTEMPTS,
    },
  }).retrieveDocuments;
}

/** `anywhere`: this worker could not execute it, so it is not handed the call back directly. */
export function toolActivity(tool: ToolDefinition, summary: string, anywhere = false) {
  return proxyActivities<Pick<Activities, 'runTool'>>({
    summary: eventSummary(summary),
    ...(anywhere && { allowEagerDispatch: false }),
    startToCloseTimeout: tool.timeoutMs + TOOL_MARGIN_MS,
    heartbeatTimeout: tool.heartbeatMs,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry:
      tool.effect === 'once'
        ? { maximumAttempts: 1 }
        : {
            initialInterval: 250,
            backoffCoefficient: 2,
            maximumInterval: 30_000,
            maximumAttempts: Math.max(LOST_ATTEMPTS, tool.attempts),
          },
  }).runTool;
}

/**
 * Looks for a worker that has the tool of a blocked call, and executes nothing: so it is tried again
 * without end, whatever the tool's effect, and each attempt may reach another worker.
 */
export function findActivity(summary: string) {
  return proxyActivities<Pick<Activities, 'runTool'>>({
    summary: eventSummary(`find ${summary}`),
    allowEagerDispatch: false,
    startToCloseTimeout: 60_000,
    heartbeatTimeout: HEARTBEAT_MS,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: 2_000, backoffCoefficient: 2, maximumInterval: 30_000 },
  }).runTool;
}

export function functionActivity(tool: ToolDefinition, summary: string) {
  return proxyActivities<Pick<Activities, 'runFunction'>>({
    summary: eventSummary(summary),
    startToCloseTimeout: tool.timeoutMs + TOOL_MARGIN_MS,
    heartbeatTimeout: tool.heartbeatMs,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: {
      initialInterval: 500,
      backoffCoefficient: 2,
      maximumInterval: 10_000,
      maximumAttempts: 5,
    },
  }).runFunction;
}
