import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RememberInput } from '../core/input/turn-inputs.js';
import { isObject } from '../core/json.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { ActivityDependencies } from './dependencies.js';
import { problemFailure, retryFailure, THIS_WORKER } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { rebuildPrompt, type Prompt } from './model/rebuild-prompt.js';
import { findStorageFault } from './storage-faults.js';
import { callTurnFunction, messagesAt, TURN_FUNCTION_ATTEMPTS } from './turn-function.js';

/**
 * Calls the agent's `remember` for an ended turn. The input specifies the prompt by its digest.
 * Only an error from the function itself counts as a failed attempt. A store that is down, or a
 * worker without the function, leaves the turn to a later attempt.
 */
export async function rememberTurn(
  deps: ActivityDependencies,
  input: RememberInput,
): Promise<void> {
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
