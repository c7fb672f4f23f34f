import type { Client } from '@temporalio/client';
import type { Resolution } from '../core/calls/call-result.js';
import { resolveUpdate, resumeUpdate } from '../workflows/messages.js';
import { executeUpdate } from './execute-update.js';
import { claim, once, type DecisionOptions } from './control.js';

/** Settles a call whose outcome is unknown. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function resolveCall(
  client: Client,
  id: string,
  resolution: Resolution,
  { by, ...patience }: DecisionOptions = {},
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  const options = once({ ...resolution, ...claim(by) });
  await executeUpdate(client, { id }, () => handle.executeUpdate(resolveUpdate, options), patience);
}

/** Lets a blocked or paused run go on at once. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function resumeRun(
  client: Client,
  id: string,
  { by, ...patience }: DecisionOptions = {},
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  const options = once(claim(by));
  await executeUpdate(client, { id }, () => handle.executeUpdate(resumeUpdate, options), patience);
}
