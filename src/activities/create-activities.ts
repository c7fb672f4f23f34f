import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { redactJson } from '../secrets/redact-json.js';
import { redact, redactMessage } from '../secrets/redact.js';
import { normaliseError } from '../tools/result/normalize-error.js';
import { callModel } from './model/call-model.js';
import type { Activities } from '../core/contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { followRun } from './follow-run.js';
import { forkMessages } from './fork-messages.js';
import { keepMessages } from './archive-messages.js';
import { loadAgent } from './load-agent.js';
import { retrieveDocuments } from './retrieve-documents.js';
import { checkBlob } from './storage.js';
import { runFunction } from './tool/run-function.js';
import { runTool } from './tool/run-tool.js';
import { askRun } from './ask-run.js';

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
  const { type, message } = normaliseError(error);
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
