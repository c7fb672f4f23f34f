import { ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import { isReceipt } from '../core/guards/recorded.js';
import type { AskReceipt } from '../core/input/inbox.js';
import { type RunInput, isProblem, parseRunInput, show } from '../core/input/input.js';
import { askProblem } from '../core/run/ask.js';
import { isObject } from '../core/text/json.js';
import { askRun, listPerdureAgents } from './activities.js';
import { checkedResult } from './do-work.js';

/** The one argument of workflow type `send`. */
export interface SendInput {
  /** Id of an open run. */
  readonly to: string;
  readonly message: string;
  /** Who sends the message, unverified. Default: unknown. */
  readonly by?: string;
  /**
   * Input of the run to start if there is none with that id; it must be open and have no message.
   * Default: an unknown id is refused.
   */
  readonly start?: RunInput;
}

/**
 * Workflow type `send`: sends an open run one message, for schedules. The message's id is the
 * workflow id, so a retry never sends a second message. Ends when the run has accepted the message.
 * Fails with `SendRefused` if the input is invalid.
 *
 * @example
 * ```ts
 * // The workflows file of your own worker: schedules then send messages to open runs.
 * export { agent, probe, send } from 'perdure/workflow';
 * ```
 */
export async function send(input: unknown): Promise<AskReceipt> {
  const problem = sendProblem(input);
  if (problem !== null) {
    throw ApplicationFailure.nonRetryable(problem, 'SendRefused');
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked field by field above
  const { to, message, by, start } = input as SendInput;
  const id = workflowInfo().workflowId;
  const receipt = await askRun({
    to,
    id,
    message,
    ...(by !== undefined && { by }),
    ...(start && { start }),
  });
  return checkedResult('askRun', isReceipt, receipt);
}

function sendProblem(value: unknown): string | null {
  if (!isObject(value)) {
    return `input: expected an object, got ${show(value)}; give {"to": "run id", "message": "text"}`;
  }
  const { to, message, by, start } = value;
  if (typeof to !== 'string' || to === '') return `to: expected the id of a run, got ${show(to)}`;
  const problem = askProblem({ message, ...(by !== undefined && { by }) });
  if (problem !== null || start === undefined) return problem;
  const parsed = parseRunInput(start);
  if (isProblem(parsed)) return `start.${parsed.problem}`;
  if (parsed.open === true && parsed.message === undefined) return null;
  return 'start: expected "open": true and no message, because the message is sent to the run';
}

/**
 * Workflow type `probe`: ends immediately, which shows that a worker polls the task queue. With
 * `agents`, it returns the names of all agents of this worker, and which of the given it lacks.
 *
 * @example
 * ```ts
 * // The workflows file of your own worker: commands then see whether a worker is there.
 * export { agent, probe } from 'perdure/workflow';
 * ```
 */
export async function probe({ agents }: { readonly agents?: readonly string[] } = {}): Promise<
  'alive' | { readonly agents: readonly string[]; readonly missing: readonly string[] }
> {
  if (agents === undefined) return 'alive';
  const known = await listPerdureAgents();
  return { agents: known, missing: agents.filter((name) => !known.includes(name)) };
}
