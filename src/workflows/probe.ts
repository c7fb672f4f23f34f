import { activityProblem } from './activity-result.js';
import { loadAgentLocally } from './activities.js';

/**
 * Workflow type `probe`: ends immediately, which shows that a worker polls the task queue. With
 * `agents`, it returns the names for which this worker has no agent.
 *
 * @example
 * ```ts
 * // The workflows file of your own worker: commands then see whether a worker is there.
 * export { agent, probe } from 'perdure/workflow';
 * ```
 */
export async function probe({ agents }: { readonly agents?: readonly string[] } = {}): Promise<
  'alive' | { readonly missing: readonly string[] }
> {
  if (agents === undefined) return 'alive';
  const known = await Promise.all(agents.map(isKnown));
  return { missing: agents.filter((_, index) => !known[index]) };
}

async function isKnown(agent: string): Promise<boolean> {
  try {
    await loadAgentLocally({ agent, limits: {} });
    return true;
  } catch (error) {
    // Any other failure, such as a missing argument of a template, comes from a worker that has the
    // agent.
    const problem = activityProblem(error);
    return !(problem?.type === 'blocked' && problem.reason === 'agent_missing');
  }
}
