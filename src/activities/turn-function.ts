import { formatDuration } from '../core/text/duration.js';
import type { Context } from '@temporalio/activity';
import type { PromptMessage } from '../core/transcript/messages.js';
import type { Places } from '../core/turn.js';
import type { RetrieveContext } from '../agents/retriever.js';
import type { Prompt } from './model/rebuild-prompt.js';
import { runBoundedOrThrow } from './run-bounded.js';
import { createLog, toRunIds } from './tool/user-function.js';

/** The number of failed attempts after which a turn fails or is not remembered. */
export const TURN_FUNCTION_ATTEMPTS = 3;

/** Returns the messages at these places of a prompt. */
export function messagesAt(
  messages: readonly PromptMessage[],
  places: Places,
): readonly PromptMessage[] {
  return places.flatMap(([from, to]) => messages.slice(from, to));
}

interface TurnFunction {
  readonly name: 'retrieve' | 'remember';
  readonly prompt: Pick<Prompt, 'pinned' | 'userContext'>;
  readonly turn: number;
  /** The default of this worker; the run's pinned value takes precedence. */
  readonly timeoutMs: number;
}

/**
 * Calls an agent's function for each turn, subject to its time limit and the activity's
 * cancellation.
 */
export async function callTurnFunction<T>(
  context: Context,
  { name, prompt, turn, timeoutMs: ownMs }: TurnFunction,
  call: (given: RetrieveContext) => T | Promise<T>,
): Promise<T> {
  const { pinned, userContext } = prompt;
  const timeoutMs = pinned.definition[name]?.timeoutMs ?? ownMs;
  const given = {
    context: userContext,
    run: { ...toRunIds(context.info), turn },
    log: createLog(context),
  };
  return await runBoundedOrThrow(async (signal) => await call({ ...given, signal }), {
    name: `${name} of agent "${pinned.definition.name}"`,
    timeoutMs,
    cancelled: context.cancellationSignal,
    timeoutError: () => new Error(`timed out after ${formatDuration(timeoutMs, { as: 'exact' })}`),
  });
}
