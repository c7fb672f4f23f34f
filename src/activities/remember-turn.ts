import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RememberInput } from '../core/input/turn-inputs.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { ActivityDependencies } from './dependencies.js';
import { problemFailure } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { rebuildPrompt } from './model/rebuild-prompt.js';
import { callTurnFunction, TURN_FUNCTION_ATTEMPTS } from './turn-function.js';

/** Calls the agent's `remember` for a turn that has ended. The input names the prompt by its digest. */
export async function rememberTurn(
  deps: ActivityDependencies,
  input: RememberInput,
): Promise<void> {
  const context = Context.current();
  await withHeartbeat(context, async () => {
    try {
      await remember(deps, context, input);
    } catch (thrown) {
      context.cancellationSignal.throwIfAborted();
      throw failureOf(context, thrown);
    }
  });
}

async function remember(
  deps: ActivityDependencies,
  context: Context,
  input: RememberInput,
): Promise<void> {
  const prompt = await rebuildPrompt(deps, context, input);
  const { agent, definition } = prompt.pinned;
  const memory = agent?.remember;
  if (!memory) {
    throw new Error(
      `agent "${definition.name}" has no remember function on this worker; deploy it again`,
    );
  }
  const { turn, outcome, own, key } = input;
  // The function gets copies, because it may change them.
  const ended = structuredClone({ turn, outcome, messages: prompt.messages.slice(-own) });
  const { save, timeoutMs } = memory;
  const called = { name: 'remember', prompt, turn, timeoutMs } as const;
  await callTurnFunction(context, called, (given) =>
    save(ended, { ...given, idempotencyKey: key }),
  );
}

/** Temporal retries the first failures; the last one carries a report for operators. */
function failureOf({ info, log }: Context, thrown: unknown): ApplicationFailure {
  const { attempt } = info;
  const message = `remember: ${normalizeError(thrown).message}`;
  log.warn('remember failed', { attempt, message });
  const type = 'RememberFailed';
  if (attempt < TURN_FUNCTION_ATTEMPTS) return ApplicationFailure.create({ type, message });
  const report = {
    type: 'remember_failed',
    attempt,
    waitMs: 0,
    at: Date.now(),
    message: message.slice(0, 300),
  };
  return problemFailure({ type: 'failed', reason: 'error', message, reports: [report] }, { type });
}
