import { proxyActivities } from '@temporalio/workflow';
import type * as activities from './activities.js';

export { agent, probe } from 'perdure/workflow';

const { shout } = proxyActivities<typeof activities>({ startToCloseTimeout: '10 s' });

/** The project's own workflow, next to the agents. */
export async function greet(name: string): Promise<string> {
  return await shout(`hello ${name}`);
}

/** Reports where it failed. */
export async function fail(): Promise<string> {
  return new Error('as asked').stack ?? '';
}
