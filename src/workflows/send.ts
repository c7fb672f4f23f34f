import { ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import { askProblem } from '../core/ask.js';
import type { AskReceipt } from '../core/inbox.js';
import { isProblem, parseRunInput, show, type RunInput } from '../core/input/input.js';
import { isObject } from '../core/json.js';
import { isReceipt } from '../core/guards/recorded.js';
import { askRun } from './activities.js';
import { fitting } from './calls/recorded-result.js';

/** The one argument of workflow type `send`. */
export interface SendInput {
  /** Id of an open run. */
  readonly to: string;
  readonly message: string;
  /** What to start where there is no run of that id; it has to be open, and without a message. */
  readonly start?: RunInput;
}

/**
 * Workflow type `send`: gives an open run one message, for schedules. Its own workflow id is the id of
 * the message, so whatever is tried again stays one message. Ends when the run has it.
 */
export async function send(input: unknown): Promise<AskReceipt> {
  const problem = sendProblem(input);
  if (problem !== null) {
    throw ApplicationFailure.nonRetryable(problem, 'SendRefused');
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked field by field above
  const { to, message, start } = input as SendInput;
  const id = workflowInfo().workflowId;
  return fitting('askRun', isReceipt, await askRun({ to, id, message, ...(start && { start }) }));
}

function sendProblem(value: unknown): string | null {
  if (!isObject(value)) {
    return `input: ${show(value)} is no object; give {"to": "run id", "message": "text"}`;
  }
  const { to, message, start } = value;
  if (typeof to !== 'string' || to === '') return `to: ${show(to)} is no id of a run`;
  const problem = askProblem({ message });
  if (problem !== null || start === undefined) return problem;
  const parsed = parseRunInput(start);
  if (isProblem(parsed)) return `start.${parsed.problem}`;
  if (parsed.open === true && parsed.message === undefined) return null;
  return 'start: has to have "open": true and no message; the message is sent to it';
}
