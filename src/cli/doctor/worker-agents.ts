import { Client, type Connection } from '@temporalio/client';
import { visible } from '../../core/text/summaries.js';
import { livePollers, listPollers } from '../../temporal/pollers.js';
import { probeAgents, type AgentsAnswer } from '../../temporal/probe-worker.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';
import type { CheckTarget } from './place.js';

const NAME = 'worker agents';
/**
 * The server picks the worker that answers, so each round sends more probes than there are workers
 * left.
 */
const ROUNDS = 3;
const PROBES_PER_WORKER = 2;
const MAX_PROBES = 20;

/** Asks each worker on the task queue whether it has the agents of the configuration. */
export async function workerAgentsFinding(
  connection: Connection,
  { server: { namespace }, taskQueue, agents }: CheckTarget,
): Promise<Finding> {
  const queue = `task queue "${visible(taskQueue)}"`;
  const pollers = await listPollers(connection, { namespace, taskQueue });
  const workers = [...new Set(livePollers(pollers, Date.now()).map(({ identity }) => identity))];
  if (agents.length === 0) {
    return unchecked('the configuration has no agents', { taskQueue });
  }
  if (workers.length === 0) {
    return unchecked(`no worker on ${queue} to ask; \`run\` and \`attach\` host their own`, {
      taskQueue,
    });
  }
  const client = new Client({ connection, namespace });
  const answers = await probeWorkers(client, { taskQueue, agents, workers });
  const silent = workers.filter((worker) => !answers.some((answer) => answer.worker === worker));
  const lacking = answers.flatMap(({ worker, missing }) =>
    missing === null || missing.length === 0 ? [] : [{ worker, missing }],
  );
  const mute = answers.flatMap(({ worker, missing }) => (missing === null ? [worker] : []));
  const unasked = [...silent, ...mute];
  const data = { taskQueue, agents: [...agents], lacking, unasked };
  const rest =
    unasked.length === 0 ? [] : [`no answer from ${unasked.map((id) => visible(id)).join(', ')}`];
  if (lacking.length > 0) {
    const text = lacking.map(
      ({ worker, missing }) =>
        `${visible(worker)} on ${queue} does not have ${missing.map((id) => visible(id)).join(', ')}`,
    );
    const fix =
      'restart that worker with this configuration, or use another queue with --task-queue or PERDURE_TASK_QUEUE';
    return { name: NAME, level: 'problem', text: [...text, ...rest].join('\n'), fix, data };
  }
  if (rest.length > 0) return unchecked(rest.join('\n'), data);
  const text = `${formatCount(workers.length, 'worker')} on ${queue} with ${agents.map((id) => visible(id)).join(', ')}`;
  return { name: NAME, level: 'ok', text, data };
}

function unchecked(text: string, data: Finding['data']): Finding {
  return { name: NAME, level: 'skipped', text: `not checked: ${text}`, data };
}

/**
 * Sends up to three rounds of probes, until each worker has answered one or a round gets no answer.
 */
async function probeWorkers(
  client: Client,
  given: {
    readonly taskQueue: string;
    readonly agents: readonly string[];
    readonly workers: readonly string[];
  },
): Promise<readonly AgentsAnswer[]> {
  const answers = new Map<string, AgentsAnswer>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const left = given.workers.filter((worker) => !answers.has(worker)).length;
    if (left === 0) break;
    const probes = Math.min(MAX_PROBES, given.workers.length === 1 ? 1 : left * PROBES_PER_WORKER);
    const answered = await Promise.all(
      Array.from({ length: probes }, () => probeAgents(client, given)),
    );
    for (const answer of answered) if (answer !== null) answers.set(answer.worker, answer);
    if (answered.every((answer) => answer === null)) break;
  }
  return [...answers.values()];
}
