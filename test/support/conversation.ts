import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation, type WorkflowHandle } from '@temporalio/client';
import type { Ask, AskReceipt } from '../../src/core/input/inbox.js';
import type { RunInput } from '../../src/core/input/input.js';
import type { Decision, DecisionReceipt } from '../../src/core/transcript/request.js';
import type { RunStatus } from '../../src/core/state/status.js';
import {
  askUpdate,
  outcomeUpdate,
  statusQuery,
  type TurnOutcome,
  resolveUpdate,
} from '../../src/workflows/messages/definitions.js';
import type { Model, ModelReply, ModelRequest } from '../../src/models/model.js';
import { isSegmentEnd } from '../../src/updates/execute-update.js';
import type { Rig } from './rig.js';
import { statusWhere } from './status-where.js';

/** Sends a message to a run, as a Temporal client does, and retries if its segment ended first. */
export async function ask(handle: WorkflowHandle, message: string | Ask): Promise<AskReceipt> {
  const given = typeof message === 'string' ? { message } : message;
  const updateId = given.id ?? randomUUID();
  for (;;) {
    try {
      return await handle.executeUpdate(askUpdate, { args: [given], updateId });
    } catch (error) {
      if (!isSegmentEnd(error)) throw error;
    }
  }
}

/** Waits for the end of a turn with the update `outcome`, and retries if the segment ended. */
export async function outcomeOf(handle: WorkflowHandle, turn: number): Promise<TurnOutcome> {
  for (;;) {
    const outcome = await handle.executeUpdate(outcomeUpdate, { args: [{ turn }] });
    if (!('pending' in outcome)) return outcome;
  }
}

export async function statusOf(handle: WorkflowHandle): Promise<RunStatus> {
  return await handle.query(statusQuery);
}

/** Resolves when the run shows this status. */
export async function untilStatus(
  handle: WorkflowHandle,
  wanted: RunStatus['status'],
): Promise<RunStatus> {
  return await statusWhere(handle, ({ status }) => status === wanted);
}

/** Waits until the run is blocked, for any reason. */
export async function blocked(handle: WorkflowHandle): Promise<RunStatus> {
  return await untilStatus(handle, 'blocked');
}

/** Waits until the run waits for any decision. */
export async function asking(handle: WorkflowHandle): Promise<RunStatus> {
  return await untilStatus(handle, 'waiting_decision');
}

/** Decides the run's oldest request. */
export async function decide(
  handle: WorkflowHandle,
  decision: Omit<Decision, 'request' | 'digest'>,
): Promise<readonly DecisionReceipt[]> {
  const [request] = (await statusOf(handle)).pending;
  if (request === undefined) throw new Error('the run asks for nothing');
  const { id, digest } = request;
  const args: [Decision] = [{ request: id, digest, ...decision }];
  return (await handle.executeUpdate(resolveUpdate, { args })).resolved;
}

/** Starts an open run with its first message. */
export async function startWith(
  rig: Rig,
  input: RunInput,
  message: string | Ask,
  id = `open-${randomUUID()}`,
): Promise<{ handle: WorkflowHandle; receipt: AskReceipt }> {
  const given = typeof message === 'string' ? { message } : message;
  const start = new WithStartWorkflowOperation('agent', {
    workflowId: id,
    taskQueue: rig.taskQueue,
    args: [input],
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
  });
  const receipt = await rig.client.workflow.executeUpdateWithStart(askUpdate, {
    startWorkflowOperation: start,
    args: [given],
    ...(given.id !== undefined && { updateId: given.id }),
  });
  return { handle: rig.client.workflow.getHandle(id), receipt };
}

const USAGE = { inputTokens: 10, outputTokens: 5, cachedTokens: 0 };

/**
 * A model that obeys the newest user message: `steps N` calls the tool `note` N times, one by one,
 * then answers; anything else is answered at once. Answers quote the message.
 */
export function obedientModel(): Model & { readonly requests: readonly ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    requests,
    call: async (request) => {
      requests.push(structuredClone(request));
      return replyTo(request);
    },
  };
}

export function replyTo({ messages }: ModelRequest): ModelReply {
  const place = messages.findLastIndex(({ role }) => role === 'user');
  const text = messages[place]?.text ?? '';
  const done = messages.slice(place).filter(({ role }) => role === 'tool').length;
  const [, wanted = '0'] = /^steps (\d+)/.exec(text) ?? [];
  if (done < Number(wanted)) {
    const given = JSON.stringify({ text: `${text} #${done + 1}` });
    return { text: '', calls: [{ name: 'note', arguments: given }], finish: 'calls', usage: USAGE };
  }
  return { text: `done: ${text}`, calls: [], finish: 'stop', usage: USAGE };
}
