import { Client, type Connection } from '@temporalio/client';
import { visible } from '../../core/state/summaries.js';
import { shellLine, shellWord } from '../../core/text/text.js';
import {
  type Build,
  type QueueState,
  isSame,
  livePollers,
  pinnedBuild,
  readQueueState,
} from '../../temporal/pollers.js';
import { readRunRow } from '../../client/run-row.js';
import { type ListedWorkflow, listWorkflows } from '../../temporal/server-answers.js';
import { deploymentTitle, promotionCommand } from '../../worker/deployment.js';
import { formatCount } from '../format/format.js';
import type { CheckTarget, Finding } from './finding.js';

/** A running run, with the queue and the build that can continue it. */
export interface OpenRun {
  readonly id: string;
  /** Null until a worker has loaded it. */
  readonly agent: string | null;
  readonly taskQueue: string;
  /** The only build that can continue the run; null if the run is not pinned. */
  readonly pinnedTo: Build | null;
  readonly listed: ListedWorkflow;
}

/** The visibility query for the running runs of a namespace. */
export const OPEN_RUNS_QUERY = "ExecutionStatus = 'Running' AND WorkflowType = 'agent'";

/** Returns up to `limit` running runs of the namespace, and whether there are more. */
async function listOpenRuns(
  client: Client,
  limit: number,
): Promise<{ readonly runs: readonly OpenRun[]; readonly more: boolean }> {
  const runs: OpenRun[] = [];
  for await (const listed of listWorkflows(client, OPEN_RUNS_QUERY)) {
    const { info } = listed;
    const { workflowId: id, taskQueue, searchAttributes } = info;
    if (runs.length === limit) return { runs, more: true };
    const [agent = null] = searchAttributes['AgentName'] ?? [];
    const named = typeof agent === 'string' ? agent : null;
    runs.push({ id, agent: named, taskQueue, pinnedTo: pinnedBuild(searchAttributes), listed });
  }
  return { runs, more: false };
}

/** The running runs, and the workers that poll their task queues. */
export interface Routing {
  readonly runs: readonly OpenRun[];
  /** Whether there are more running runs than were read. */
  readonly more: boolean;
  /** The configured queue and the queues of running runs, with their live pollers. */
  readonly queues: ReadonlyMap<string, QueueState>;
}

/** The maximum numbers of running runs and of their queues that are read. */
const RUNS = 1_000;
const QUEUES = 50;

export async function readRouting(
  connection: Connection,
  { server: { namespace }, taskQueue }: CheckTarget,
): Promise<Routing> {
  const { runs, more } = await listOpenRuns(new Client({ connection, namespace }), RUNS);
  const names = [...new Set([taskQueue, ...runs.map((run) => run.taskQueue)])].slice(0, QUEUES);
  const now = Date.now();
  const states = await Promise.all(
    names.map(async (name) => {
      const state = await readQueueState(connection, { namespace, taskQueue: name });
      return [name, { ...state, pollers: livePollers(state.pollers, now) }] as const;
    }),
  );
  return { runs, more, queues: new Map(states) };
}

/** The maximum number of histories that are read, of runs that have not loaded their agent. */
const UNLOADED = 20;
/** The maximum number of blocked runs that are named; the rest are counted. */
const NAMED = 5;

/** Checks for runs of the configured queue that are blocked: they need a person, or a fix. */
export async function blockedFinding(
  client: Client,
  { runs }: Routing,
  { taskQueue }: CheckTarget,
): Promise<Finding> {
  const name = 'blocked runs';
  const own = runs.filter((run) => run.taskQueue === taskQueue);
  const unloaded = own.filter(({ agent }) => agent === null).slice(0, UNLOADED);
  const looked = [...own.filter(({ agent }) => agent !== null), ...unloaded];
  const rows = await Promise.all(looked.map(({ listed }) => readRunRow(client, listed)));
  const blocked = rows.filter(({ status }) => status === 'blocked');
  const data = {
    looked: looked.length,
    blocked: blocked.map(({ id, agent, reason }) => ({ id, agent, reason })),
  };
  if (blocked.length === 0) {
    const text = `none on ${titled(taskQueue)}; ${formatCount(looked.length, 'running run')} checked`;
    return { name, level: 'ok', text, data };
  }
  const shown = blocked.slice(0, NAMED);
  const ids = shown.map(({ id, reason }) => `${visible(id)} (${visible(reason ?? 'unknown')})`);
  const rest = blocked.length > NAMED ? `, and ${blocked.length - NAMED} more` : '';
  const text = `${formatCount(blocked.length, 'run')} on ${titled(taskQueue)}: ${ids.join(', ')}${rest}`;
  const fix = shown.map(({ id }) => {
    const command = shellLine({ program: 'perdure status', operands: [id], options: [] });
    return `see what it needs: ${command}`;
  });
  return { name, level: 'problem', text, fix: fix.join('\n'), data };
}

export function isPolledBy({ pollers }: QueueState, build: Build): boolean {
  return pollers.some((poller) => isSame(poller.build, build));
}

export function buildTitle(build: Build): string {
  return visible(deploymentTitle(build));
}

interface Mismatch {
  readonly level: 'note' | 'problem';
  readonly taskQueue: string;
  readonly what: 'unpolled' | 'no_current' | 'current_gone' | 'unversioned_idle';
  readonly text: string;
  readonly fix: string;
}

/** Checks for task queues whose waiting work no polling worker can pick up. */
export function queuesFinding({ runs, queues }: Routing, place: CheckTarget): Finding {
  const name = 'task queues';
  const found = [...queues].flatMap(([taskQueue, state]) => {
    const open = runs.filter((run) => run.taskQueue === taskQueue);
    return mismatches({ taskQueue, state, open }, place);
  });
  const data = { looked: queues.size, mismatches: found.map((each) => ({ ...each })) };
  if (found.length === 0) {
    return { name, level: 'ok', text: `${formatCount(queues.size, 'queue')} checked`, data };
  }
  return {
    name,
    level: found.some(({ level }) => level === 'problem') ? 'problem' : 'note',
    text: found.map(({ text }) => text).join('\n'),
    fix: [...new Set(found.map(({ fix }) => fix))].join('\n'),
    data,
  };
}

interface Seen {
  readonly taskQueue: string;
  readonly state: QueueState;
  /** The running runs on it. */
  readonly open: readonly OpenRun[];
}

function mismatches(seen: Seen, place: CheckTarget): readonly Mismatch[] {
  const { taskQueue, state, open } = seen;
  if (state.pollers.length > 0) return misrouted(seen, place);
  if (open.length === 0) return [];
  const text = `${titled(taskQueue)}: ${formatCount(open.length, 'running run')}, and no worker polls it`;
  const fix = lackedFix(seen, place) ?? workerFix(seen, place);
  return [{ level: 'note', taskQueue, what: 'unpolled', text, fix }];
}

/** Returns the fix for runs that a worker of this configuration would block; null if it has all their agents. */
function lackedFix({ taskQueue, open }: Seen, place: CheckTarget): string | null {
  const names = open.flatMap(({ agent }) => agent ?? []);
  const lacked = [...new Set(names)].filter((name) => !place.known.includes(name));
  if (lacked.length === 0) return null;
  return `start the program that has ${lacked.map(visible).join(', ')}, with ${titled(taskQueue)}`;
}

/**
 * Only the worker of the right configuration has the agents of another queue, or any but the built-in one. A
 * run that a schedule of the user's own has started does not say its agent before it has loaded it.
 */
function workerFix({ taskQueue, open }: Seen, place: CheckTarget): string {
  const isUnknown = place.isBuiltIn && open.some(({ agent }) => agent === null);
  const isOwn = taskQueue === place.taskQueue && !isUnknown;
  const where = isOwn ? '' : ', with the configuration of its agents';
  return `start a worker there${where}: ${place.workerCommand(taskQueue, isOwn)}`;
}

/** Checks whether the workers that poll a queue are the ones that get its work. */
function misrouted({ taskQueue, state }: Seen, { server }: CheckTarget): readonly Mismatch[] {
  const { pollers, current } = state;
  const { address, namespace } = server;
  const [build] = pollers.flatMap((poller) => poller.build ?? []);
  const promotion = build && promotionCommand({ address, namespace, ...build });
  const unversioned = pollers.filter((poller) => poller.build === null).length;
  const problem = { level: 'problem', taskQueue } as const;
  const found: Mismatch[] = [];
  if (current === null) {
    if (build === undefined || promotion === undefined || unversioned > 0) return [];
    const text = `${titled(taskQueue)}: workers of ${buildTitle(build)} poll it, but no build is current: no run starts`;
    return [{ ...problem, what: 'no_current', text, fix: promotion }];
  }
  const start = `start workers with --deployment ${shellWord(current.deploymentName)}`;
  if (!isPolledBy(state, current)) {
    const text = `${titled(taskQueue)}: runs start on ${buildTitle(current)}, but no worker of that build is running`;
    const or = promotion === undefined ? '' : `, or promote a build that polls: ${promotion}`;
    found.push({ ...problem, what: 'current_gone', text, fix: `${start}${or}` });
  }
  if (unversioned > 0) {
    const text = `${titled(taskQueue)}: ${unversionedText(unversioned)}: all work is routed to ${buildTitle(current)}`;
    const fix = `${start}, or run the unversioned ones on another task queue`;
    found.push({ ...problem, what: 'unversioned_idle', text, fix });
  }
  return found;
}

/** Returns for example `1 unversioned worker is idle` or `2 unversioned workers are idle`. */
function unversionedText(workers: number): string {
  return `${formatCount(workers, 'unversioned worker')} ${workers === 1 ? 'is' : 'are'} idle`;
}

function titled(taskQueue: string): string {
  return `task queue "${visible(taskQueue)}"`;
}
