import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { WithStartWorkflowOperation, type Client } from '@temporalio/client';
import { outcomeUpdate, statusQuery } from '../../src/workflows/messages/definitions.js';
import { openingMessage } from '../conversation.js';
import { inParallel } from '../kit/in-parallel.js';

const DESCRIBED_AT_ONCE = 20;
/** Between two questions whether a loop by hand has ended its first turn. */
const ASK_AGAIN_MS = 100;

/** Who keeps the run open: perdure, or a loop written by hand. */
export type IdleSide = 'perdure' | 'bare';

export interface FirstTurn {
  readonly taskQueue: string;
  /** The number of steps that call a tool; one more reply ends the turn. */
  readonly steps: number;
  /** Size of each message. */
  readonly bytes: number;
}

const START = { perdure: startIdleRun, bare: startIdleLoop };

/**
 * Starts this many open runs and resolves with their ids once each waits for its second message.
 */
export async function startIdleRuns(
  client: Client,
  turn: FirstTurn,
  {
    count,
    atOnce,
    side = 'perdure',
  }: { readonly count: number; readonly atOnce: number; readonly side?: IdleSide },
): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => `idle-${randomUUID()}`);
  await inParallel(ids, { atOnce }, (id) => START[side](client, turn, id));
  return ids;
}

async function startIdleRun(
  client: Client,
  { taskQueue, steps, bytes }: FirstTurn,
  id: string,
): Promise<void> {
  const message = openingMessage({ name: id, steps, tools: ['work'], bytes });
  for (;;) {
    // Starts the run, or finds it if a segment has released its waiters.
    const outcome = await client.workflow.executeUpdateWithStart(outcomeUpdate, {
      startWorkflowOperation: new WithStartWorkflowOperation('agent', {
        workflowId: id,
        taskQueue,
        args: [{ agent: 'scripted', open: true, message }],
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
      }),
      args: [{ turn: 1 }],
    });
    if ('pending' in outcome) continue;
    if (outcome.status === 'completed') return await untilIdle(client, id);
    throw new Error(`${id} is no idle run: ${outcome.status}, ${outcome.error ?? ''}`);
  }
}

async function startIdleLoop(
  client: Client,
  { taskQueue, steps, bytes }: FirstTurn,
  id: string,
): Promise<void> {
  const message = openingMessage({ name: id, steps, tools: ['work'], bytes });
  const handle = await client.workflow.start('openLoop', {
    workflowId: id,
    taskQueue,
    args: [{ model: 'scripted', message }],
  });
  for (;;) {
    if (await handle.query<boolean>('isIdle')) return;
    await pause(ASK_AGAIN_MS);
  }
}

/** After a turn, a run may still continue in a new segment. */
async function untilIdle(client: Client, id: string): Promise<void> {
  const handle = client.workflow.getHandle(id);
  for (;;) {
    const { status } = await handle.query(statusQuery);
    if (status === 'waiting_message') return;
  }
}

/** Maps each id to its segment and the number of events in it; an idle run always has the same. */
export async function eventsOf(
  client: Client,
  ids: readonly string[],
): Promise<ReadonlyMap<string, { readonly runId: string; readonly events: number }>> {
  const counted = await inParallel(ids, { atOnce: DESCRIBED_AT_ONCE }, async (id) => {
    const { runId, historyLength } = await client.workflow.getHandle(id).describe();
    return [id, { runId, events: historyLength }] as const;
  });
  return new Map(counted);
}
