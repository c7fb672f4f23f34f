import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { normaliseError } from '../tools/normalise-error.js';
import { callModel } from './call-model.js';
import type { Activities } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { loadAgent } from './load-agent.js';
import { runFunction } from './run-function.js';
import { runTool } from './run-tool.js';

export function createActivities(deps: ActivityDependencies): Activities {
  return {
    loadAgent: presentable((input) => loadAgent(deps, input)),
    callModel: presentable((input) => callModel(deps, input)),
    runTool: presentable((input) => runTool(deps, input)),
    runFunction: presentable((input) => runFunction(deps, input)),
  };
}

/**
 * What an activity throws goes into the history: bounded, redacted, and in whole characters (half a
 * one ends the worker's process). A foreign error loses its cause and its stack on the way.
 */
function presentable<I, O>(activity: (input: I) => Promise<O>): (input: I) => Promise<O> {
  return async (input) => {
    try {
      return await activity(input);
    } catch (error) {
      if (error instanceof CancelledFailure) throw error;
      const { type, message } = normaliseError(error);
      if (!(error instanceof ApplicationFailure))
        throw ApplicationFailure.create({ type, message });
      const { nonRetryable, details, nextRetryDelay } = error;
      throw ApplicationFailure.create({
        type: error.type ?? type,
        message,
        nonRetryable: nonRetryable ?? false,
        ...(details && { details }),
        ...(nextRetryDelay !== undefined && nextRetryDelay !== null && { nextRetryDelay }),
      });
    }
  };
}
