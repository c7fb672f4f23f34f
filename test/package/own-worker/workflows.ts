import { proxyActivities } from '@temporalio/workflow';
import type * as activities from './activities.js';

export { agent } from 'perdure/workflow';

const { shout } = proxyActivities<typeof activities>({ startToCloseTimeout: '10 s' });

/** A workflow of the project's own, beside the agents. */
export async function greet(name: string): Promise<string> {
  return await shout(`hello ${name}`);
}

/** Tells where it failed. */
export async function fail(): Promise<string> {
  return new Error('as asked').stack ?? '';
}
