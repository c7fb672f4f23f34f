import { queryTerm } from '../../client/queries.js';
import { shellWord } from '../../core/text/shell.js';
import type { OpenRun } from './open-runs.js';
import type { Build } from '../../temporal/pollers.js';
import { visible } from '../../core/text/summaries.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';
import type { CheckTarget } from './place.js';
import { buildTitle, isPolledBy, isSame, type Routing } from './routing.js';

/** The maximum number of ids that are listed; the rest are counted. */
const NAMED = 5;

interface Strand {
  readonly build: Build;
  readonly runs: readonly OpenRun[];
}

/**
 * Checks for running runs that are pinned to a build without a running worker: they cannot
 * continue.
 */
export function strandedFinding({ runs, more, queues }: Routing, place: CheckTarget): Finding {
  const name = 'stranded runs';
  const strands = strandsOf(
    runs.filter(({ taskQueue, pinnedTo }) => {
      const queue = queues.get(taskQueue);
      return pinnedTo !== null && queue !== undefined && !isPolledBy(queue, pinnedTo);
    }),
  );
  const data = {
    looked: runs.length,
    more,
    stranded: strands.map(({ build, runs: stranded }) => ({
      ...build,
      runs: stranded.map(({ id }) => id),
    })),
  };
  if (strands.length === 0) {
    const looked = `${formatCount(runs.length, 'running run')} checked${more ? '; there are more' : ''}`;
    return { name, level: 'ok', text: `none; ${looked}`, data };
  }
  const text = strands.map(
    ({ build, runs: stranded }) =>
      `${names(stranded)} on ${buildTitle(build)}, which has no running worker`,
  );
  const fix = strands.map((strand) => fixFor(strand, place));
  return { name, level: 'problem', text: text.join('\n'), fix: fix.join('\n'), data };
}

function strandsOf(runs: readonly OpenRun[]): readonly Strand[] {
  const builds = runs
    .map(({ pinnedTo }) => pinnedTo)
    .filter((build) => build !== null)
    .filter((build, index, all) => all.findIndex((other) => isSame(other, build)) === index);
  return builds.map((build) => ({
    build,
    runs: runs.filter(({ pinnedTo }) => isSame(pinnedTo, build)),
  }));
}

function names(runs: readonly OpenRun[]): string {
  const ids = runs.slice(0, NAMED).map(({ id }) => visible(id));
  const rest = runs.length > NAMED ? `, and ${runs.length - NAMED} more` : '';
  return `${formatCount(runs.length, 'run')} (${ids.join(', ')}${rest})`;
}

/**
 * Returns the fix. The current build may continue the runs only if it can replay their histories.
 */
function fixFor({ build, runs }: Strand, { server: { address, namespace } }: CheckTarget): string {
  const { deploymentName, buildId } = build;
  const query = `${queryTerm('TemporalWorkerDeploymentVersion', `${deploymentName}:${buildId}`)} AND ExecutionStatus = 'Running'`;
  const [run] = runs;
  const which =
    runs.length === 1 && run !== undefined
      ? `--workflow-id ${shellWord(run.id)}`
      : `--query ${shellWord(query)} --yes`;
  return (
    `start a worker of that build again, or, if perdure replay --from-server ${shellWord(query)} succeeds, ` +
    `move them to the current one: temporal workflow update-options --address ${shellWord(address)} ` +
    `--namespace ${shellWord(namespace)} ${which} --versioning-override-behavior auto_upgrade`
  );
}
