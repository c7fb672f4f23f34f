import type { Client } from '@temporalio/client';
import { checksDecision } from '../../client/below.js';
import type { OpenRequest } from '../../client/requests.js';
import { toRunStatus } from '../../client/status.js';
import { readRun } from '../../history/read-run.js';
import { describeWorkflow } from '../../temporal/server-answers.js';
import type { workerHint } from '../open-run.js';
import { readChecked } from './checked-decision.js';

/** The maximum number of runs that are asked about a cancel, those that have waited longest, and at once. */
const [MAX_ASKED, AT_ONCE] = [200, 8];

/** What decides which worker can continue a run. */
type WorkerPlace = Parameters<typeof workerHint>[1];

/** The runs in which no decision can be made before a worker runs. */
interface HeldRuns {
  /** Those for which a cancel is requested: it comes before any decision, and takes the requests from the list. */
  readonly canceled: ReadonlyMap<string, WorkerPlace>;
  /** Those with decisions that a worker has not checked yet, by the ids of the requests. */
  readonly checking: ReadonlyMap<
    string,
    { readonly place: WorkerPlace; readonly checked: Awaited<ReturnType<typeof readChecked>> }
  >;
  /** Those with requests that are decided, which the run has not processed, by the ids of these requests. */
  readonly decided: ReadonlyMap<
    string,
    { readonly place: WorkerPlace; readonly ids: ReadonlySet<string> }
  >;
}

/** Returns which of the requests of a run are decided by what no worker has processed yet. */
async function decidedIn(
  client: Client,
  run: string,
  requests: readonly OpenRequest[],
): Promise<ReadonlySet<string>> {
  const read = await readRun(client, run).catch(() => null);
  const open = read && toRunStatus(read, Date.now()).pending.map(({ id }) => id);
  const own = requests.flatMap((one) => (one.run === run ? [one.id] : []));
  return new Set(open === null ? [] : own.filter((id) => !open.includes(id)));
}

/** Returns which of the runs with these requests take no decision before a worker runs. */
export async function heldRuns(
  client: Client,
  requests: readonly OpenRequest[],
): Promise<HeldRuns> {
  const runs = [...new Map(requests.map(({ run, agent }) => [run, agent]))].slice(0, MAX_ASKED);
  const canceled = new Map<string, WorkerPlace>();
  const checking: Map<string, NonNullable<ReturnType<HeldRuns['checking']['get']>>> = new Map();
  const decided: Map<string, NonNullable<ReturnType<HeldRuns['decided']['get']>>> = new Map();
  for (let from = 0; from < runs.length; from += AT_ONCE) {
    await Promise.all(
      runs.slice(from, from + AT_ONCE).map(async ([run, agent]) => {
        // A run that has ended meanwhile is in the list for a moment.
        const raw = await describeWorkflow(client, run).then(
          (described) => described.raw,
          () => null,
        );
        const taskQueue = raw?.workflowExecutionInfo?.taskQueue ?? '';
        const place = { agent: agent ?? '', taskQueue };
        if (raw?.workflowExtendedInfo?.cancelRequested === true) canceled.set(run, place);
        else if (raw !== null && checksDecision(raw)) {
          checking.set(run, { place, checked: await readChecked(client, run) });
        } else if (raw?.pendingWorkflowTask) {
          const ids = await decidedIn(client, run, requests);
          if (ids.size > 0) decided.set(run, { place, ids });
        }
      }),
    );
  }
  return { canceled, checking, decided };
}
