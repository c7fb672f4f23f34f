import type { LivingRun } from './living-runs.js';
import type { Build } from '../../temporal/pollers.js';
import { visible } from '../../core/text/summaries.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';
import type { Place } from './place.js';
import { buildTitle, isPolledBy, isSame, type Routing } from './routing.js';

/** So many ids are named; the rest is counted. */
const NAMED = 5;

interface Strand {
  readonly build: Build;
  readonly runs: readonly LivingRun[];
}

/** Open runs that only a build can work on of which no worker is up: they stand still, whatever is sent to them. */
export function strandedFinding({ runs, more, queues }: Routing, place: Place): Finding {
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
    stranded: strands.map(({ build, runs: of }) => ({ ...build, runs: of.map(({ id }) => id) })),
  };
  if (strands.length === 0) {
    const looked = `${formatCount(runs.length, 'open run')} looked at${more ? ', there are more' : ''}`;
    return { name, level: 'ok', text: `none; ${looked}`, data };
  }
  const text = strands.map(
    ({ build, runs: of }) => `${names(of)} on ${buildTitle(build)}, of which no worker is up`,
  );
  const cure = strands.map((strand) => fixFor(strand, place));
  return { name, level: 'problem', text: text.join('\n'), cure: cure.join('\n'), data };
}

function strandsOf(runs: readonly LivingRun[]): readonly Strand[] {
  const builds = runs
    .map(({ pinnedTo }) => pinnedTo)
    .filter((build) => build !== null)
    .filter((build, index, all) => all.findIndex((other) => isSame(other, build)) === index);
  return builds.map((build) => ({
    build,
    runs: runs.filter(({ pinnedTo }) => isSame(pinnedTo, build)),
  }));
}

function names(runs: readonly LivingRun[]): string {
  const ids = runs.slice(0, NAMED).map(({ id }) => visible(id));
  const rest = runs.length > NAMED ? `, and ${runs.length - NAMED} more` : '';
  return `${formatCount(runs.length, 'run')} (${ids.join(', ')}${rest})`;
}

/** The current build may go on with them only if it would do the same: that is what replay tells. */
function fixFor({ build, runs }: Strand, { server: { address, namespace } }: Place): string {
  const { deploymentName, buildId } = build;
  const query = `TemporalWorkerDeploymentVersion = '${deploymentName}:${buildId}' AND ExecutionStatus = 'Running'`;
  const [run] = runs;
  const which =
    runs.length === 1 && run !== undefined
      ? `--workflow-id '${run.id.replaceAll("'", `'\\''`)}'`
      : `--query "${query}" --yes`;
  return (
    `start a worker of that build again, or, where perdure replay --from-server "${query}" is content, ` +
    `move them to the current one: temporal workflow update-options --address ${address} ` +
    `--namespace ${namespace} ${which} --versioning-override-behavior auto_upgrade`
  );
}
