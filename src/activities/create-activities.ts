import { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { LRUCache } from 'lru-cache';
import type { AskReceipt } from '../core/input/inbox.js';
import type {
  Activities,
  ArchiveMessagesInput,
  ArchiveMessagesResult,
  ProbeActivities,
  SendMessageInput,
} from '../core/run/contract.js';
import type { RememberInput } from '../core/state/turn.js';
import { isObject, sha256Hex } from '../core/text/json.js';
import { archiveHistory } from '../history/read-run.js';
import { redact, redactJson, redactMessage } from '../secrets/redact.js';
import { type Archive, ArchiveError, blobsOfRun, within } from '../storage/blob-store.js';
import { normalizeError } from '../tools/result/plain.js';
import { askOrStartWorker, askWorker } from '../updates/ask.js';
import { wakeIfMoved } from '../updates/wake.js';
import type { ActivityDependencies } from './activity-context.js';
import { THIS_WORKER, problemFailure, retryFailure, withHeartbeat } from './attempt.js';
import {
  TURN_FUNCTION_ATTEMPTS,
  callTurnFunction,
  messagesAt,
  retrieveDocuments,
} from './documents.js';
import { followRun } from './follow-run.js';
import { forkMessages } from './fork-messages.js';
import { loadAgent } from './load-agent.js';
import { callModel } from './model/call-model.js';
import { formatChunk } from './model/transcript-cache.js';
import { observeLoad } from './observe.js';
import { type Prompt, queryWorkflow, rebuildPrompt } from './prompt.js';
import { checkDecision } from './requests/check-decision.js';
import { notifyRequest } from './requests/notify-request.js';
import { checkBlob, findStorageFault, storageFailure } from './storage-faults.js';
import { runReads } from './tool/run-reads.js';
import { runFunction, runTool } from './tool/run-tool.js';

/** Timeout in ms, shorter than the activity's, so a store that hangs is reported as such. */
const ARCHIVE_LIMIT_MS = 12_000;

/**
 * Stores data that is about to be deleted: the history of the segment so far in the archive, and a
 * part of the prompt in the blob store. Both stores are idempotent, so the activity can be retried.
 * If a store is down, the failure blocks the run if `must` is set; otherwise the run continues, and
 * archives later.
 */
async function archiveMessages(
  deps: ActivityDependencies,
  input: ArchiveMessagesInput,
): Promise<ArchiveMessagesResult> {
  try {
    return await storeMessages(deps, input);
  } catch (error) {
    const fault = findStorageFault(error);
    if (fault === null) throw error;
    const { message } = fault;
    const { log, info } = Context.current();
    log.warn('messages cannot be archived', { message });
    if (input.must) throw storageFailure(fault, { blocked: input.blocked });
    const report = {
      type: 'not_archived',
      attempt: info.attempt,
      waitMs: 0,
      at: Date.now(),
      message: message.slice(0, 300),
    };
    const details = [{ reports: [report] }];
    throw ApplicationFailure.create({ type: 'storage', message, nonRetryable: true, details });
  }
}

async function storeMessages(
  deps: ActivityDependencies,
  { firstRunId, archive, chunk }: ArchiveMessagesInput,
): Promise<ArchiveMessagesResult> {
  const context = Context.current();
  if (archive !== null) await archiveOwnHistory(context, deps.archive, firstRunId);
  if (chunk === null) return {};
  const messages = await queryWorkflow(context, deps).prompt(chunk.from, chunk.to);
  return { blob: await deps.blobs.put(formatChunk(messages)) };
}

/** Rejects with an `ArchiveError` if an archive of any driver fails or does not answer. */
async function archiveOwnHistory(
  { client, info }: Context,
  archive: Archive,
  firstRunId: string,
): Promise<void> {
  const { workflowId: id = '', runId = '' } = info.workflowExecution ?? {};
  // As the server has it: what is encoded there does not leave it decoded.
  const history = await client.workflow.getHandle(id, runId).fetchHistory();
  const segment = { firstRunId, runId, history };
  const run = { namespace: info.namespace, id };
  try {
    await within(ARCHIVE_LIMIT_MS, () => archiveHistory(archive, run, segment));
  } catch (cause) {
    if (cause instanceof ArchiveError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ArchiveError(`the archive cannot be written: ${reason}`, {
      kind: 'unwritable',
      cause,
    });
  }
}

/**
 * Calls the agent's `remember` for an ended turn. The input specifies the prompt by its digest.
 * Only an error from the function itself counts as a failed attempt. A store that is down, or a
 * worker without the function, leaves the turn to a later attempt.
 */
async function rememberTurn(deps: ActivityDependencies, input: RememberInput): Promise<void> {
  const context = Context.current();
  const failures = failuresBefore(context);
  await withHeartbeat(
    context,
    async () => {
      const prompt = await rebuild(deps, context, input);
      const { agent, definition } = prompt.pinned;
      const memory = agent?.remember;
      if (!memory) {
        throw retryFailure(
          `agent "${definition.name}" has no remember function on ${THIS_WORKER}; deploy it again`,
        );
      }
      const { turn, outcome, own, key } = input;
      // The function gets copies, because it may change them.
      const messages = messagesAt(prompt.messages, own);
      const ended = structuredClone({ turn, outcome, messages });
      const { save, timeoutMs } = memory;
      const called = { name: 'remember', prompt, turn, timeoutMs } as const;
      try {
        await callTurnFunction(context, called, (given) =>
          save(ended, { ...given, idempotencyKey: key }),
        );
      } catch (thrown) {
        context.cancellationSignal.throwIfAborted();
        throw failureOf(context, thrown, failures + 1);
      }
    },
    () => ({ failures }),
  );
}

/** Returns the number of earlier attempts in which the function failed. */
function failuresBefore({ info }: Context): number {
  const details: unknown = info.heartbeatDetails;
  const failures: unknown = isObject(details) ? details['failures'] : 0;
  return Number.isInteger(failures) ? Number(failures) : 0;
}

async function rebuild(
  deps: ActivityDependencies,
  context: Context,
  input: RememberInput,
): Promise<Prompt> {
  try {
    return await rebuildPrompt(deps, context, input);
  } catch (thrown) {
    const fault = findStorageFault(thrown);
    throw fault === null ? thrown : retryFailure(fault.message);
  }
}

/**
 * Creates the failure of an attempt. Temporal retries the first failures; the last one carries a
 * report for operators.
 */
function failureOf(context: Context, thrown: unknown, failures: number): ApplicationFailure {
  const message = `remember: ${normalizeError(thrown).message}`;
  context.log.warn('remember failed', { failures, message });
  const type = 'RememberFailed';
  if (failures < TURN_FUNCTION_ATTEMPTS) {
    context.heartbeat({ failures });
    return ApplicationFailure.create({ type, message });
  }
  const report = {
    type: 'remember_failed',
    attempt: failures,
    waitMs: 0,
    at: Date.now(),
    message: message.slice(0, 300),
  };
  return problemFailure({ type: 'failed', reason: 'error', message, reports: [report] }, { type });
}

/** Creates the activities of a worker. */
export function createActivities(all: ActivityDependencies): Activities & ProbeActivities {
  /** Runs an activity, whose texts belong to the run that has scheduled it. */
  const activity = <I, O>(run: (deps: ActivityDependencies, input: I) => Promise<O>) =>
    withSafeErrors(async (input: I) => {
      const { workflowId = '' } = Context.current().info.workflowExecution ?? {};
      return await run({ ...all, blobs: blobsOfRun(all.blobs, workflowId) }, input);
    });
  return {
    listPerdureAgents: async () => all.agents.names,
    loadAgent: activity((deps, input) =>
      observeLoad(Context.current(), input, () => loadAgent(deps, input)),
    ),
    callModel: activity(callModel),
    runTool: activity(runTool),
    runReads: activity(runReads),
    retrieveDocuments: activity(retrieveDocuments),
    rememberTurn: activity(rememberTurn),
    archiveMessages: activity(archiveMessages),
    forkMessages: activity(forkMessages),
    runFunction: activity(runFunction),
    checkBlob: activity(checkBlob),
    checkDecision: activity(checkDecision),
    notifyRequest: activity(notifyRequest),
    askRun: withSafeErrors(askRun),
    followRun: withSafeErrors(followRun),
  };
}

/**
 * Makes the errors of an activity safe for the history: bounded, redacted, in whole characters
 * (half a character ends the worker's process), and without a cause or a stack.
 */
function withSafeErrors<I, O>(activity: (input: I) => Promise<O>): (input: I) => Promise<O> {
  return async (input) => {
    try {
      return await activity(input);
    } catch (error) {
      if (isObject(input) && 'blocked' in input) await wakeBlocked(Context.current());
      throw error instanceof CancelledFailure ? toSafeCancellation(error) : toSafeFailure(error);
    }
  };
}

/** The segments that this worker has woken; each at most once a minute. */
const woken = new LRUCache<string, true>({ max: 1_000, ttl: 60_000 });

async function wakeBlocked({ client, info }: Context): Promise<void> {
  const { namespace, workflowExecution: run } = info;
  if (run === undefined || woken.has(run.runId)) return;
  if (await wakeIfMoved(client, { namespace, ...run })) woken.set(run.runId, true);
}

/**
 * The SDK recognizes its own cancellation by identity, so it is replaced only if it holds a secret.
 */
function toSafeCancellation(error: CancelledFailure): CancelledFailure {
  const message = redactMessage(error.message);
  return message === error.message ? error : new CancelledFailure(message);
}

function toSafeFailure(error: unknown): ApplicationFailure {
  const { type, message } = normalizeError(error);
  const known = error instanceof ApplicationFailure ? error : null;
  const details = known?.details && redactJson(known.details);
  const nextRetryDelay = known?.nextRetryDelay;
  // The SDK logs no warning for a benign failure.
  const category = known?.category;
  const failure = ApplicationFailure.create({
    type: redact(known?.type ?? type),
    message,
    nonRetryable: known?.nonRetryable ?? false,
    ...(details && { details }),
    ...(category !== undefined && category !== null && { category }),
    ...(nextRetryDelay !== undefined && nextRetryDelay !== null && { nextRetryDelay }),
  });
  // A stack within perdure does not help the reader, and would take a kilobyte of history each
  // time.
  failure.stack = '';
  return failure;
}

/**
 * Timeout in ms, shorter than an attempt of this activity, which Temporal retries if it gets no
 * answer.
 */
const WITHIN_MS = 30_000;
/** The limit for ids of messages; ids of workflows may be longer, and are then hashed. */
const MAX_MESSAGE_ID_CHARACTERS = 200;

/** Sends a message to a run. The message has its own id, so the activity can be retried. */
async function askRun({ to, id, message, by, start }: SendMessageInput): Promise<AskReceipt> {
  const { client, info } = Context.current();
  // No person sends it, so it decides nothing.
  const answers = false;
  const ask = {
    message,
    answers,
    id: id.length > MAX_MESSAGE_ID_CHARACTERS ? sha256Hex(id) : id,
    ...(by !== undefined && { by }),
  };
  try {
    const { turn, duplicate } = await (start === undefined
      ? askWorker(client, to, ask, { within: WITHIN_MS })
      : askOrStartWorker(client, ask, {
          id: to,
          taskQueue: info.taskQueue,
          input: start,
          within: WITHIN_MS,
        }));
    return { turn, ...(duplicate && { duplicate }) };
  } catch (error) {
    throw toUndelivered(error);
  }
}

/**
 * Returns the error for an undelivered message. Only a run that has ended or never existed is a
 * permanent failure; Temporal retries anything else.
 */
function toUndelivered(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { cause } = error;
  const isPermanent =
    cause instanceof WorkflowNotFoundError || cause instanceof WorkflowExecutionAlreadyStartedError;
  return ApplicationFailure.create({
    type: 'Undelivered',
    message: error.message,
    nonRetryable: isPermanent,
  });
}
