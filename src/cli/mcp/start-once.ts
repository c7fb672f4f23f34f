import type { Client } from '@temporalio/client';
import { readRun } from '../../history/read-run.js';
import { startRun } from '../../updates/start.js';
import { sha256Hex } from '../../core/digest.js';
import type { RunInput } from '../../core/input/input.js';
import { visible } from '../../core/text/summaries.js';
import { requireOwnRun, ownedMemo } from './owner.js';
import { IdTakenError } from '../../core/errors.js';

export interface StartedOnce {
  readonly id: string;
  /** The operation had started it before; it may have ended by now. */
  readonly repeated: boolean;
}

const DIGITS = 24;

/** The run that an operation of this owner starts, however often it is asked for. */
export function runOfOperation(owner: string, operationId: string): string {
  return `mcp-${sha256Hex(`${owner} ${operationId}`).slice(0, DIGITS)}`;
}

/**
 * Starts a run for an operation, or finds the one that it has started. Rejects where the operation was
 * another one: a mistake must not pass for a repeat.
 */
export async function startOnce(
  client: Client,
  input: RunInput,
  { operationId, taskQueue, owner }: { operationId: string; taskQueue: string; owner: string },
): Promise<StartedOnce> {
  const id = runOfOperation(owner, operationId);
  try {
    await startRun(client, input, { id, taskQueue, memo: ownedMemo(owner, id) });
    return { id, repeated: false };
  } catch (error) {
    if (!(error instanceof IdTakenError)) throw error;
  }
  await requireOwnRun(client, id, owner);
  const before = await readRun(client, id);
  // A later segment's input has no message any more.
  const message = before.view.input?.message ?? input.message;
  if (before.agent === input.agent && message === input.message) return { id, repeated: true };
  const what =
    before.agent === input.agent ? 'with another message' : `of agent ${visible(before.agent)}`;
  throw new Error(
    `operation_id ${JSON.stringify(operationId)} has started a run ${what} before: ${id}. ` +
      'Give a new operation_id for a new run, or look at that one with agent_status',
  );
}
