import { droppedPart } from '../../core/graph/walk.js';
import type { Outcome } from '../../core/transcript/outcome.js';
import type { Projection } from '../../history/projection.js';
import { readRun } from '../../history/read-run.js';
import { hasLiveWorker } from '../../temporal/pollers.js';
import type { CliContext } from '../context.js';
import { agentLack } from '../open-run.js';
import { failedNode } from './failed-node.js';
import { nextCommandFor } from './next-command.js';

interface FailedRun {
  readonly id: string;
  readonly view: Projection;
}

/**
 * Returns the sentence with the command that begins a new run at the node that has failed; null if there is
 * none, or if no worker could execute the new run.
 */
export async function forkHint(
  context: CliContext,
  { id, view }: FailedRun,
  { status }: Pick<Outcome, 'status'>,
): Promise<string | null> {
  if (view.state?.graph === undefined || !['failed', 'stopped'].includes(status)) return null;
  const client = await context.client();
  // The report of a run does not depend on it, also if the server has gone or has deleted the run.
  const run = await readRun(client, id).catch(() => null);
  const node = run === null ? undefined : failedNode(run);
  if (run === null || node === undefined) return null;
  const canHost = (await agentLack(context, run)) === null;
  if (!canHost && !(await hasLiveWorker(client, run.taskQueue))) return null;
  const fork = await nextCommandFor(context, run, ['fork', id, '--node', node]);
  return `After a fix, begin at the node that failed, in a new run, with: ${fork}`;
}

/** Returns what the fork of a run lacks that begins neither with a message nor at a node. */
export function nothingToFork({ view: { state } }: Pick<FailedRun, 'view'>): string {
  const { name = '', graph } = state?.config.definition ?? {};
  if (graph === undefined)
    return 'message: expected the next message, got none; give it after the run';
  return droppedPart({ name, graph }, { message: '' }) === null
    ? 'message: expected the next message; or begin at a node with --node'
    : '--node: expected the node to begin at, since nothing in this graph reads a message, got none';
}
