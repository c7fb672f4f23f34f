import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { askProblem } from '../core/ask.js';
import type { Limits } from '../core/definition.js';
import type { Ask, AskReceipt } from '../core/inbox.js';
import type { EffectiveLimits } from '../core/state.js';
import {
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  pauseUpdate,
  setLimitsUpdate,
} from '../workflows/handles.js';
import { answered, UndecidedError } from './answered.js';

/**
 * A message as it was taken. `duplicate` is told by the run; a repeat that reaches the server within
 * the same segment is given the first answer again, without it.
 */
export interface SentMessage extends AskReceipt {
  /** Its id: sent again with the same one, it is the same message. */
  readonly messageId: string;
}

/**
 * Gives a run a message; answered when the run has it, not when it has an answer. The message is
 * neither lost nor doubled where the run goes on in a new segment meanwhile: its id, made up where
 * there is none, is the same in every try. Needs a worker. Rejects with an `UndecidedError`.
 */
export async function askRun(client: Client, id: string, ask: Ask): Promise<SentMessage> {
  const problem = askProblem(ask);
  if (problem !== null) throw new UndecidedError(problem);
  const { id: messageId = randomUUID() } = ask;
  const options = { args: [{ ...ask, id: messageId }] as [Ask], updateId: messageId };
  const handle = client.workflow.getHandle(id);
  const receipt = await answered(client, id, () => handle.executeUpdate(askUpdate, options));
  return { ...receipt, messageId };
}

/** Lets what is in flight finish and starts nothing more. Needs a worker. Rejects with an `UndecidedError`. */
export async function pauseRun(client: Client, id: string): Promise<void> {
  const handle = client.workflow.getHandle(id);
  await answered(client, id, () => handle.executeUpdate(pauseUpdate));
}

/**
 * Ends the turn under way, only this one where it is named: a late word does not hit the next.
 * @returns its number. Needs a worker. Rejects with an `UndecidedError`.
 */
export async function cancelTurn(client: Client, id: string, turn?: number): Promise<number> {
  const handle = client.workflow.getHandle(id);
  const args: [{ turn?: number }] = [turn === undefined ? {} : { turn }];
  const answer = await answered(client, id, () => handle.executeUpdate(cancelTurnUpdate, { args }));
  return answer.cancelled;
}

/** Takes no more messages: the run ends with those that it has. Needs a worker. Rejects with an `UndecidedError`. */
export async function closeRun(client: Client, id: string): Promise<void> {
  const handle = client.workflow.getHandle(id);
  await answered(client, id, () => handle.executeUpdate(closeUpdate));
}

/** Replaces the named limits. @returns all as they are now. Needs a worker. Rejects with an `UndecidedError`. */
export async function setLimits(
  client: Client,
  id: string,
  limits: Limits,
): Promise<EffectiveLimits> {
  const handle = client.workflow.getHandle(id);
  return await answered(client, id, () =>
    handle.executeUpdate(setLimitsUpdate, { args: [limits] }),
  );
}
