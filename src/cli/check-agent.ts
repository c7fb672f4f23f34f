import { agentProblem } from '../client/known-agents.js';
import { inFlags } from './input/run-settings.js';
import type { CliContext } from './context.js';
import { UsageError } from './exit-codes.js';
import { isWorkedElsewhere } from './hosting/hosting.js';
import { NothingRunsError } from './hosting/open-server.js';
import { configFile } from './input/load-config.js';

/**
 * Throws a `UsageError` if the agent is not in the configuration, or accepts no arguments. Without
 * a configuration file, the agent may exist on a worker elsewhere.
 */
export async function checkAgent(
  context: CliContext,
  input: Parameters<typeof agentProblem>[1],
): Promise<void> {
  const { agents } = await context.config();
  const { agent } = input;
  const problem = agentProblem(agents, input);
  if (problem === null) return;
  const { config: file } = context.options;
  const isBuiltIn = configFile({ file, folder: process.cwd(), env: context.env }) === null;
  const isKnown = agents.some(({ name }) => name === agent);
  if (isBuiltIn && !isKnown && (await isServed(context))) return;
  throw new UsageError(inFlags(problem));
}

/** Returns whether a worker elsewhere answers. Starts no server. */
async function isServed(context: CliContext): Promise<boolean> {
  try {
    await context.server({ start: false });
  } catch (error) {
    if (error instanceof NothingRunsError) return false;
    throw error;
  }
  return await isWorkedElsewhere(context, await context.taskQueue());
}
