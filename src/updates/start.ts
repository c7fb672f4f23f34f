import { randomBytes } from 'node:crypto';
import {
  WorkflowExecutionAlreadyStartedError,
  type Client,
  type WorkflowIdConflictPolicy,
} from '@temporalio/client';
import type { RunInput } from '../core/input/input.js';
import { show } from '../core/text/format-value.js';
import { workflowSummary } from '../core/text/markdown.js';
import { visible } from '../core/text/summaries.js';
import { IdTakenError, InputError, NotDeliveredError } from '../core/errors.js';
import { isUnanswered } from '../temporal/grpc.js';

const SUMMARY_CHARACTERS = 80;

export interface StartInput {
  readonly id: string;
  readonly taskQueue: string;
  /** Whether the id of a run that has ended may be reused; default false. */
  readonly reuseId?: boolean | undefined;
  /** The initial memo of the run, readable by everyone in the namespace. */
  readonly memo?: Readonly<Record<string, unknown>>;
}

export interface StartedRun {
  readonly id: string;
  readonly runId: string;
}

/**
 * Starts a run. Rejects with an `IdTakenError` if a run with this id exists or, without `reuseId`,
 * existed, with an `InputError` if an option is invalid, and with a `NotDeliveredError` if the server
 * does not answer.
 */
export async function startRun(
  client: Client,
  input: RunInput,
  { id, taskQueue, reuseId = false, memo }: StartInput,
): Promise<StartedRun> {
  assertRunId(id);
  const conflict: WorkflowIdConflictPolicy = 'FAIL';
  try {
    const handle = await client.workflow.start('agent', {
      taskQueue,
      workflowId: id,
      args: [input],
      workflowIdReusePolicy: reuseId ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
      workflowIdConflictPolicy: conflict,
      staticSummary: runSummary(input),
      ...(memo && { memo }),
    });
    return { id, runId: handle.firstExecutionRunId };
  } catch (error) {
    if (isUnanswered(error)) throw notStarted(id, error);
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    throw new IdTakenError(`a run "${id}" already exists`, { cause: error });
  }
}

function notStarted(id: string, cause: unknown): NotDeliveredError {
  const message =
    `the Temporal server does not answer, so it is unknown whether run "${visible(id)}" was started; ` +
    'start it again with this id: an IdTakenError then means that it was';
  return new NotDeliveredError(message, { mayArrive: true, cause });
}

/** The server accepts no longer ids. */
const MAX_ID_CHARACTERS = 1_000;

/** Describes what is wrong with the id of a new run; returns null if it is valid. */
export function runIdProblem(id: string): string | null {
  if (typeof id === 'string' && id.trim() !== '' && id.length <= MAX_ID_CHARACTERS) return null;
  return `id: expected a string of 1 to ${MAX_ID_CHARACTERS} characters, got ${show(id)}; omit it for a new id`;
}

/** Throws an `InputError` for an invalid run id. */
export function assertRunId(id: string): void {
  const problem = runIdProblem(id);
  if (problem !== null) throw new InputError(problem);
}

/** Returns a readable and unique id, such as `files-20261121-8f3a2c`. */
export function newRunId(agent: string, now: Date = new Date()): string {
  const day = now.toISOString().slice(0, 10).replaceAll('-', '');
  return `${agent}-${day}-${randomBytes(3).toString('hex')}`;
}

/**
 * Returns the run's summary for Temporal's UI: Markdown that shows the message as it was written.
 */
export function runSummary({
  agent,
  prompt = '',
  message = prompt,
}: Pick<RunInput, 'agent' | 'message' | 'prompt'>): string {
  const text = visible(message);
  const cut = text.length > SUMMARY_CHARACTERS ? `${text.slice(0, SUMMARY_CHARACTERS - 1)}…` : text;
  return workflowSummary(`${visible(agent)}: ${cut}`);
}
