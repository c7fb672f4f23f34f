import { randomUUID } from 'node:crypto';
import { type Client, WithStartWorkflowOperation } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import type { Block, BlockAsk } from '../core/rules/rate.js';
import {
  takeUpdate,
  budgetQuery,
  leaseUpdate,
  settleSignal,
} from '../workflows/messages/definitions.js';
import {
  type BudgetReading,
  DAY_MS,
  type Lease,
  type LeaseAsk,
  type Settlement,
  type SharedBudget,
} from '../core/rules/budget.js';
import { sha256Hex } from '../core/text/json.js';

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

const SIGNAL_MS = 2_000;
/**
 * The server ends a segment after this time. One with a worker ends with its day; without one, the budget
 * starts again where a worker asks.
 */
const SEGMENT_MS = DAY_MS + 10 * 60_000;
const TAG_DIGITS = 32;

/** Returns the id of the workflow that hands out a budget. Ids are public, and tags may be confidential. */
export function budgetWorkflowId({
  of,
  name,
  stored = name,
  unit,
}: Omit<SharedBudget, 'limit'>): string {
  return `budget:${unit}:${of}:${of === 'tag' ? sha256Hex(name).slice(0, TAG_DIGITS) : stored}`;
}

/** Takes a lease of a budget. Starts the workflow that hands it out if there is none. */
export async function takeLease(
  client: Client,
  { budget, taskQueue }: { readonly budget: SharedBudget; readonly taskQueue: string },
  ask: LeaseAsk,
): Promise<Lease> {
  const startWorkflowOperation = new WithStartWorkflowOperation('budget', {
    workflowId: budgetWorkflowId(budget),
    workflowIdConflictPolicy: 'USE_EXISTING',
    taskQueue,
    args: [],
    workflowRunTimeout: SEGMENT_MS,
    staticSummary: 'budget of a day',
    // All runs that share it wait for it.
    priority: { priorityKey: 1 },
  });
  return await client.withDeadline(Date.now() + TRY_MS, () =>
    client.workflow.executeUpdateWithStart(leaseUpdate, {
      startWorkflowOperation,
      args: [ask],
      updateId: randomUUID(),
    }),
  );
}

/**
 * Gives a lease back. A signal needs no worker, and the server keeps it. Resolves with false if the
 * workflow has ended with its day.
 */
export async function settleLease(
  client: Client,
  budget: SharedBudget,
  said: Settlement,
): Promise<boolean> {
  try {
    await client.withDeadline(Date.now() + SIGNAL_MS, () =>
      client.workflow.getHandle(budgetWorkflowId(budget)).signal(settleSignal, said),
    );
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

/** Returns what a budget's workflow knows of its day; null if it does not run. Needs a worker. */
export async function readBudget(
  client: Client,
  budget: SharedBudget,
): Promise<BudgetReading | null> {
  try {
    return await client.withDeadline(Date.now() + TRY_MS, () =>
      client.workflow.getHandle(budgetWorkflowId(budget)).query(budgetQuery),
    );
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}
