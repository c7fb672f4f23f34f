import type { QueueState } from '../../temporal/pollers.js';
import { visible } from '../../core/text/summaries.js';
import { promotionCommand } from '../../worker/deployment.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';
import type { Place } from './place.js';
import { buildTitle, isPolledBy, type Routing } from './routing.js';

interface Mismatch {
  readonly level: 'note' | 'problem';
  readonly taskQueue: string;
  readonly what: 'unpolled' | 'no_current' | 'current_gone' | 'unversioned_idle';
  readonly text: string;
  readonly cure: string;
}

/** Queues on which work waits for one kind of worker while another kind polls, or nobody. */
export function queuesFinding({ runs, queues }: Routing, place: Place): Finding {
  const name = 'task queues';
  const found = [...queues].flatMap(([taskQueue, state]) => {
    const open = runs.filter((run) => run.taskQueue === taskQueue).length;
    return mismatches({ taskQueue, state, open }, place);
  });
  const data = { looked: queues.size, mismatches: found.map((each) => ({ ...each })) };
  if (found.length === 0) {
    return { name, level: 'ok', text: `${formatCount(queues.size, 'queue')} looked at`, data };
  }
  return {
    name,
    level: found.some(({ level }) => level === 'problem') ? 'problem' : 'note',
    text: found.map(({ text }) => text).join('\n'),
    cure: [...new Set(found.map(({ cure }) => cure))].join('\n'),
    data,
  };
}

interface Seen {
  readonly taskQueue: string;
  readonly state: QueueState;
  /** Open runs on it. */
  readonly open: number;
}

function mismatches(seen: Seen, place: Place): readonly Mismatch[] {
  const { taskQueue, state, open } = seen;
  if (state.pollers.length > 0) return misrouted(seen, place);
  if (open === 0) return [];
  const text = `${titled(taskQueue)}: ${formatCount(open, 'open run')}, and nobody polls it`;
  const cure = `start a worker there: perdure worker --task-queue '${visible(taskQueue)}'`;
  return [{ level: 'note', taskQueue, what: 'unpolled', text, cure }];
}

/** Somebody polls; who gets the work is another question. */
function misrouted({ taskQueue, state }: Seen, { server }: Place): readonly Mismatch[] {
  const { pollers, current } = state;
  const { address, namespace } = server;
  const [build] = pollers.flatMap((poller) => poller.build ?? []);
  const promotion = build && promotionCommand({ address, namespace, ...build });
  const unversioned = pollers.filter((poller) => poller.build === null).length;
  const problem = { level: 'problem', taskQueue } as const;
  const found: Mismatch[] = [];
  if (current === null) {
    if (build === undefined || promotion === undefined || unversioned > 0) return [];
    const text = `${titled(taskQueue)}: workers of ${buildTitle(build)} poll it, and no build is current: no run begins`;
    return [{ ...problem, what: 'no_current', text, cure: promotion }];
  }
  const start = `start workers with --deployment ${current.deploymentName}`;
  if (!isPolledBy(state, current)) {
    const text = `${titled(taskQueue)}: runs begin on ${buildTitle(current)}, and no worker of that build is up`;
    const or = promotion === undefined ? '' : `, or let them begin on one that polls: ${promotion}`;
    found.push({ ...problem, what: 'current_gone', text, cure: `${start}${or}` });
  }
  if (unversioned > 0) {
    const text = `${titled(taskQueue)}: ${formatCount(unversioned, 'worker')} without a deployment in vain, all work goes to ${buildTitle(current)}`;
    const cure = `${start}, or those without on another task queue`;
    found.push({ ...problem, what: 'unversioned_idle', text, cure });
  }
  return found;
}

function titled(taskQueue: string): string {
  return `task queue "${visible(taskQueue)}"`;
}
