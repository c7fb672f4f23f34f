import type { Client } from '@temporalio/client';
import type { Resolution } from '../core/calls/call-result.js';
import { resolveUpdate, resumeUpdate } from '../workflows/messages.js';
import { executeUpdate } from './execute-update.js';
import { claim, newUpdate, type DecisionOptions } from './control.js';

/** Resolves a tool call whose outcome is unknown. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function resolveCall(
  client: Client,
  id: string,
  resolution: Resolution,
  { by, ...options }: DecisionOptions = {},
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  const update = newUpdate({ ...resolution, ...claim(by) });
  await executeUpdate(client, { id }, () => handle.executeUpdate(resolveUpdate, update), options);
}

/** Lets a blocked or paused run continue at once. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function resumeRun(
  client: Client,
  id: string,
  { by, ...options }: DecisionOptions = {},
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  const update = newUpdate(claim(by));
  await executeUpdate(client, { id }, () => handle.executeUpdate(resumeUpdate, update), options);
}
