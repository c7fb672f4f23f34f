import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { redactJson } from '../secrets/redact-json.js';
import { redact, redactMessage } from '../secrets/redact.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { callModel } from './model/call-model.js';
import type { Activities, SendMessageInput } from '../core/contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { followRun } from './follow-run.js';
import { forkMessages } from './fork-messages.js';
import { keepMessages } from './archive-messages.js';
import { loadAgent } from './load-agent.js';
import { retrieveDocuments } from './retrieve-documents.js';
import { checkBlob } from './storage.js';
import { runFunction } from './tool/run-function.js';
import { runTool } from './tool/run-tool.js';
import { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import { askOrStartWorker } from '../updates/ask-or-start.js';
import { askWorker } from '../updates/control.js';
import { sha256Hex } from '../core/digest.js';
import type { AskReceipt } from '../core/inbox.js';

export function createActivities(deps: ActivityDependencies): Activities {
  return {
    loadAgent: presentable((input) => loadAgent(deps, input)),
    callModel: presentable((input) => callModel(deps, input)),
    runTool: presentable((input) => runTool(deps, input)),
    retrieveDocuments: presentable((input) => retrieveDocuments(deps, input)),
    keepMessages: presentable((input) => keepMessages(deps, input)),
    forkMessages: presentable((input) => forkMessages(deps, input)),
    runFunction: presentable((input) => runFunction(deps, input)),
    checkBlob: presentable((input) => checkBlob(deps, input)),
    askRun: presentable(askRun),
    followRun: presentable(followRun),
  };
}

/**
 * What an activity throws goes into the history: bounded, redacted, and in whole characters (half a
 * one ends the worker's process). Cause and stack stay behind.
 */
function presentable<I, O>(activity: (input: I) => Promise<O>): (input: I) => Promise<O> {
  return async (input) => {
    try {
      return await activity(input);
    } catch (error) {
      throw error instanceof CancelledFailure ? redacted(error) : bare(error);
    }
  };
}

/** The SDK knows a cancellation by its very object; that of user code may say anything. */
function redacted(error: CancelledFailure): CancelledFailure {
  const message = redactMessage(error.message);
  return message === error.message ? error : new CancelledFailure(message);
}

function bare(error: unknown): ApplicationFailure {
  const { type, message } = normalizeError(error);
  const known = error instanceof ApplicationFailure ? error : null;
  const details = known?.details && redactJson(known.details);
  const nextRetryDelay = known?.nextRetryDelay;
  const failure = ApplicationFailure.create({
    type: redact(known?.type ?? type),
    message,
    nonRetryable: known?.nonRetryable ?? false,
    ...(details && { details }),
    ...(nextRetryDelay !== undefined && nextRetryDelay !== null && { nextRetryDelay }),
  });
  // Where in perdure it was thrown says nothing to whom it concerns, and costs a kilobyte each time.
  failure.stack = '';
  return failure;
}

/** Shorter than an attempt of this activity, which Temporal retries when no answer comes. */
const WITHIN_MS = 30_000;
/** Ids of workflows may be longer than those of messages. */
const MAX_MESSAGE_ID_CHARACTERS = 200;

/** Gives a run a message under an id of its own, so that an attempt that is repeated does no harm. */
async function askRun({ to, id, message, start }: SendMessageInput): Promise<AskReceipt> {
  const { client, info } = Context.current();
  const ask = { message, id: id.length > MAX_MESSAGE_ID_CHARACTERS ? sha256Hex(id) : id };
  try {
    const { turn, duplicate } = await (start === undefined
      ? askWorker(client, to, ask, { withinMs: WITHIN_MS })
      : askOrStartWorker(client, ask, {
          id: to,
          taskQueue: info.taskQueue,
          input: start,
          withinMs: WITHIN_MS,
        }));
    return { turn, ...(duplicate && { duplicate }) };
  } catch (error) {
    throw undelivered(error);
  }
}

/** A run that is over, or that there never was, does not come back; all else may pass. */
function undelivered(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { cause } = error;
  const final =
    cause instanceof WorkflowNotFoundError || cause instanceof WorkflowExecutionAlreadyStartedError;
  return ApplicationFailure.create({
    type: 'Undelivered',
    message: error.message,
    nonRetryable: final,
  });
}
