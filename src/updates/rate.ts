import { randomUUID } from 'node:crypto';
import { type Client, WithStartWorkflowOperation } from '@temporalio/client';
import type { Block, BlockAsk } from '../core/rules/rate.js';
import { takeUpdate } from '../workflows/messages/definitions.js';

/** The time for one try: about as long as the server takes to notice a frozen worker. */
const TRY_MS = 10_000;
/** The server ends the workflow if it has had no worker for so long; then it starts where one asks. */
const ABANDONED_AFTER_MS = 10 * 60_000;

/** Returns the id of the workflow that hands out a model's allowance. */
export function rateWorkflowId(model: string): string {
  return `rate:${model}`;
}

/**
 * Takes a block of a model's allowance. Starts the workflow that hands it out if there is none. A try
 * that fails may have taken a block, which is lost; a further try would get its times too late.
 */
export async function takeFromRate(
  client: Client,
  { model, taskQueue }: { readonly model: string; readonly taskQueue: string },
  ask: BlockAsk,
): Promise<Block> {
  const startWorkflowOperation = new WithStartWorkflowOperation('rate', {
    workflowId: rateWorkflowId(model),
    workflowIdConflictPolicy: 'USE_EXISTING',
    taskQueue,
    args: [],
    workflowRunTimeout: ABANDONED_AFTER_MS,
    staticSummary: 'shared rate of a model',
    // All runs of the model wait for it.
    priority: { priorityKey: 1 },
  });
  return await client.withDeadline(Date.now() + TRY_MS, () =>
    client.workflow.executeUpdateWithStart(takeUpdate, {
      startWorkflowOperation,
      args: [ask],
      updateId: randomUUID(),
    }),
  );
}
