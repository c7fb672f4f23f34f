import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { normaliseError } from '../tools/normalise-error.js';
import { callModel } from './call-model.js';
import type { Activities } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { forkMessages } from './fork-messages.js';
import { keepMessages } from './keep-messages.js';
import { loadAgent } from './load-agent.js';
import { retrieveDocuments } from './retrieve-documents.js';
import { runFunction } from './run-function.js';
import { runTool } from './run-tool.js';
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
    askRun: presentable(askRun),
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
      if (error instanceof CancelledFailure) throw error;
      throw bare(error);
    }
  };
}

function bare(error: unknown): ApplicationFailure {
  const { type, message } = normaliseError(error);
  const known = error instanceof ApplicationFailure ? error : null;
  const details = known?.details;
  const nextRetryDelay = known?.nextRetryDelay;
  const failure = ApplicationFailure.create({
    type: known?.type ?? type,
    message,
    nonRetryable: known?.nonRetryable ?? false,
    ...(details && { details }),
    ...(nextRetryDelay !== undefined && nextRetryDelay !== null && { nextRetryDelay }),
  });
  // Where in perdure it was thrown says nothing to whom it concerns, and costs a kilobyte each time.
  failure.stack = '';
  return failure;
}
