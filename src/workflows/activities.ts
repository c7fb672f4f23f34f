import {
  ActivityCancellationType,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { Activities } from '../activities/contract.js';
import type { ToolDefinition } from '../core/definition.js';

// All timeouts and retries of the product stand here. Temporal is the only one that retries.

/** A model call: the worker's own clocks end it before, this is the backstop. */
const MODEL_TIMEOUT_MS = 61 * 60_000;
const HEARTBEAT_MS = 10_000;
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

/** For an agent that this worker does not know: another one may. */
export const loadAgentAnywhere = proxyActivities<Pick<Activities, 'loadAgent'>>({
  startToCloseTimeout: 5_000,
  scheduleToCloseTimeout: 10_000,
  retry: { initialInterval: 500, backoffCoefficient: 1.5, maximumInterval: 2_000 },
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

/** Short work on files; a store that is down is given time, and then the run goes on where it is. */
export const { keepMessages } = proxyActivities<Pick<Activities, 'keepMessages'>>({
  summary: 'keep messages',
  startToCloseTimeout: 30_000,
  scheduleToCloseTimeout: 60_000,
  retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 10_000 },
});

/** At the end of a run: nobody waits long for an archive that is down. */
export const { keepMessages: keepMessagesBriefly } = proxyActivities<
  Pick<Activities, 'keepMessages'>
>({
  summary: 'archive',
  startToCloseTimeout: 5_000,
  scheduleToCloseTimeout: 10_000,
  retry: { initialInterval: 250, backoffCoefficient: 2, maximumInterval: 2_000 },
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

export function modelActivity(options: { summary: string; closing: boolean }) {
  return proxyActivities<Pick<Activities, 'callModel'>>({
    summary: options.summary,
    startToCloseTimeout: MODEL_TIMEOUT_MS,
    heartbeatTimeout: HEARTBEAT_MS,
    ...(options.closing && { scheduleToCloseTimeout: CLOSING_TIMEOUT_MS }),
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 30_000 },
  }).callModel;
}

/** Beyond the function's own time, which the worker keeps: to read the prompt and to keep the documents. */
const RETRIEVE_MARGIN_MS = 60_000;

export function retrieveActivity(timeoutMs: number) {
  return proxyActivities<Pick<Activities, 'retrieveDocuments'>>({
    summary: 'retrieve',
    startToCloseTimeout: timeoutMs + RETRIEVE_MARGIN_MS,
    heartbeatTimeout: HEARTBEAT_MS,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: {
      initialInterval: 500,
      backoffCoefficient: 3,
      maximumInterval: 30_000,
      maximumAttempts: LOST_ATTEMPTS,
    },
  }).retrieveDocuments;
}

export function toolActivity(tool: ToolDefinition, summary: string) {
  return proxyActivities<Pick<Activities, 'runTool'>>({
    summary,
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

export function functionActivity(tool: ToolDefinition, summary: string) {
  return proxyActivities<Pick<Activities, 'runFunction'>>({
    summary,
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
