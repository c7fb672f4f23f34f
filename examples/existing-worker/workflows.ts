// Workflow code: it imports only types from the agents, whose code never runs here.
import { proxyActivities } from '@temporalio/workflow';
import { runAgent } from 'perdure/workflow';
import type * as activities from './activities.js';
import type { reviewer } from './agents.js';

// Without `agent`, creating the worker fails; without `probe`, commands cannot see the worker.
export { agent, probe } from 'perdure/workflow';

const { fetchApplication, notify } = proxyActivities<typeof activities>({
  startToCloseTimeout: '1 minute',
});

/**
 * Reviews an application: your own steps around an agent, which is a child run of this workflow.
 */
export async function review(application: string): Promise<boolean> {
  const text = await fetchApplication(application);
  const { output } = await runAgent<typeof reviewer>({ agent: 'reviewer', message: text });
  const accepted = output?.accepted ?? false;
  await notify(application, accepted, output?.reason ?? 'a person has to look at it');
  return accepted;
}
