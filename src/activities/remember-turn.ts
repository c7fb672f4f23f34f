import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RememberInput } from '../core/input/turn-inputs.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { ActivityDependencies } from './dependencies.js';
import { problemFailure } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { rebuildPrompt } from './model/rebuild-prompt.js';
import { runBoundedOrThrow } from './run-bounded.js';
import { createLog, toRunIds } from './tool/user-function.js';

/** After this many attempts that failed, the run goes on without its memory of the turn. */
const ATTEMPTS = 3;

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
  const { pinned, messages, userContext } = await rebuildPrompt(deps, context, input);
  const { agent, definition } = pinned;
  const memory = agent?.remember;
  if (!memory) {
    throw new Error(
      `agent "${definition.name}" has no remember function on this worker; deploy it again`,
    );
  }
  const { turn, outcome, own, key } = input;
  const timeoutMs = definition.remember?.timeoutMs ?? memory.timeoutMs;
  // The function gets copies, because it may change them.
  const ended = structuredClone({ turn, outcome, messages: messages.slice(-own) });
  const given = {
    idempotencyKey: key,
    context: userContext,
    run: { ...toRunIds(context.info), turn },
    log: createLog(context),
  };
  await runBoundedOrThrow(async (signal) => await memory.save(ended, { ...given, signal }), {
    name: `remember of agent "${definition.name}"`,
    timeoutMs,
    cancelled: context.cancellationSignal,
    timeoutError: () => new Error(`it did not end within ${timeoutMs} ms`),
  });
}

/** Temporal retries the first failures; the last one carries a report for operators. */
function failureOf({ info, log }: Context, thrown: unknown): ApplicationFailure {
  const { attempt } = info;
  const message = `remember: ${normalizeError(thrown).message}`;
  log.warn('remember failed', { attempt, message });
  const type = 'RememberFailed';
  if (attempt < ATTEMPTS) return ApplicationFailure.create({ type, message });
  const report = {
    type: 'remember_failed',
    attempt,
    waitMs: 0,
    at: Date.now(),
    message: message.slice(0, 300),
  };
  return problemFailure({ type: 'failed', reason: 'error', message, reports: [report] }, { type });
}
