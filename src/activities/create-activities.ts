import { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { Activities, SendMessageInput } from '../core/contract.js';
import { sha256Hex } from '../core/digest.js';
import type { AskReceipt } from '../core/inbox.js';
import { redactJson } from '../secrets/redact-json.js';
import { redact, redactMessage } from '../secrets/redact.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { askOrStartWorker } from '../updates/ask-or-start.js';
import { askWorker } from '../updates/ask-run.js';
import { archiveMessages } from './archive-messages.js';
import type { ActivityDependencies } from './dependencies.js';
import { followRun } from './follow-run.js';
import { forkMessages } from './fork-messages.js';
import { loadAgent } from './load-agent.js';
import { callModel } from './model/call-model.js';
import { checkDecision } from './requests/check-decision.js';
import { notifyRequest } from './requests/notify-request.js';
import { observeLoad } from './observe.js';
import { rememberTurn } from './remember-turn.js';
import { retrieveDocuments } from './retrieve-documents.js';
import { checkBlob } from './storage-faults.js';
import { runFunction } from './tool/run-function.js';
import { runTool } from './tool/run-tool.js';

/** Creates the activities of a worker. */
export function createActivities(deps: ActivityDependencies): Activities {
  return {
    loadAgent: withSafeErrors((input) =>
      observeLoad(Context.current(), input, () => loadAgent(deps, input)),
    ),
    callModel: withSafeErrors((input) => callModel(deps, input)),
    runTool: withSafeErrors((input) => runTool(deps, input)),
    retrieveDocuments: withSafeErrors((input) => retrieveDocuments(deps, input)),
    rememberTurn: withSafeErrors((input) => rememberTurn(deps, input)),
    archiveMessages: withSafeErrors((input) => archiveMessages(deps, input)),
    forkMessages: withSafeErrors((input) => forkMessages(deps, input)),
    runFunction: withSafeErrors((input) => runFunction(deps, input)),
    checkBlob: withSafeErrors((input) => checkBlob(deps, input)),
    checkDecision: withSafeErrors((input) => checkDecision(deps, input)),
    notifyRequest: withSafeErrors((input) => notifyRequest(deps, input)),
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
      throw error instanceof CancelledFailure ? toSafeCancellation(error) : toSafeFailure(error);
    }
  };
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
  const failure = ApplicationFailure.create({
    type: redact(known?.type ?? type),
    message,
    nonRetryable: known?.nonRetryable ?? false,
    ...(details && { details }),
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
async function askRun({ to, id, message, start }: SendMessageInput): Promise<AskReceipt> {
  const { client, info } = Context.current();
  // No person sends it, so it decides nothing.
  const answers = false;
  const ask = { message, answers, id: id.length > MAX_MESSAGE_ID_CHARACTERS ? sha256Hex(id) : id };
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
