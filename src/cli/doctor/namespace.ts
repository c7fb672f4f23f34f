import { Client, type Connection } from '@temporalio/client';
import { queryTerm } from '../../client/run-row.js';
import { visible } from '../../core/state/summaries.js';
import { shellWord } from '../../core/text/text.js';
import { missingSearchAttributes, retentionHours, withConnection } from '../../server/namespace.js';
import { type ServerHandle, messageOf } from '../../server/server-settings.js';
import { SEARCH_ATTRIBUTES } from '../../temporal/grpc.js';
import {
  type AgentsAnswer,
  type Build,
  askWorkers,
  isSame,
  listPollers,
  livePollers,
} from '../../temporal/pollers.js';
import { formatAgo, formatCount, formatSpan } from '../format/format.js';
import { connectionEnv } from '../hosting/hosting.js';
import { fullDiskMessage } from '../hosting/server-notes.js';
import type { CheckTarget, Finding } from './finding.js';
import {
  type OpenRun,
  type Routing,
  blockedFinding,
  buildTitle,
  isPolledBy,
  queuesFinding,
  readRouting,
} from './routing.js';
import { tenantsFinding } from './tenants.js';

/** The maximum number of ids that are listed; the rest are counted. */
const NAMED = 5;

/** What lets a run go on without a worker that polls its queue. */
const HOST_THEIR_OWN = '`run` and `attach` host their own for the agents of this configuration';

interface Strand {
  readonly build: Build;
  readonly runs: readonly OpenRun[];
}

/**
 * Checks for running runs that are pinned to a build without a running worker: they cannot
 * continue.
 */
function strandedFinding({ runs, more, queues }: Routing, place: CheckTarget): Finding {
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

const NAME = 'worker agents';

/**
 * Asks each worker on the task queue whether it has the agents of the configuration. Of the built-in
 * configuration, it expects none: a worker of the user's own has other agents, which are listed.
 */
async function workerAgentsFinding(
  connection: Connection,
  { server: { namespace }, taskQueue, agents, isBuiltIn }: CheckTarget,
): Promise<Finding> {
  const queue = `task queue "${visible(taskQueue)}"`;
  const pollers = await listPollers(connection, { namespace, taskQueue });
  const identities = [...new Set(livePollers(pollers, Date.now()).map(({ identity }) => identity))];
  if (agents.length === 0) {
    return unchecked('the configuration has no agents', { taskQueue });
  }
  if (identities.length === 0) {
    return unchecked(`no worker on ${queue} to ask; ${HOST_THEIR_OWN}`, {
      taskQueue,
    });
  }
  const client = new Client({ connection, namespace });
  const expected = isBuiltIn ? [] : agents;
  const answers = await askWorkers(client, { taskQueue, agents: expected, workers: identities });
  const silent = identities.filter((worker) => !answers.some((answer) => answer.worker === worker));
  const lacking = answers.flatMap(({ worker, missing }) =>
    missing === null || missing.length === 0 ? [] : [{ worker, missing }],
  );
  const mute = answers.flatMap((answer) => (isMute(answer, isBuiltIn) ? [answer.worker] : []));
  const unasked = [...silent, ...mute];
  const served = isBuiltIn
    ? [...new Set(answers.flatMap((answer) => answer.agents ?? []))].toSorted()
    : agents;
  const data = { taskQueue, agents: [...served], lacking, unasked };
  const rest = unasked.length === 0 ? [] : [`no answer from ${listed(unasked)}`];
  if (lacking.length > 0) {
    const text = lacking.map(
      ({ worker, missing }) => `${visible(worker)} on ${queue} does not have ${listed(missing)}`,
    );
    const fix =
      'restart that worker with this configuration; if it is of another project, give this one its own `taskQueue`, ' +
      'or call doctor in the folder of the other';
    return { name: NAME, level: 'problem', text: [...text, ...rest].join('\n'), fix, data };
  }
  if (rest.length > 0) {
    const finding = unchecked(rest.join('\n'), data);
    const isLackingProbe = answers.some(({ hasProbe }) => !hasProbe);
    return isLackingProbe || answers.length === 0 ? { ...finding, fix: PROBE_FIX } : finding;
  }
  const text = `${formatCount(identities.length, 'worker')} on ${queue} with ${listed(served) || 'no agents'}`;
  return { name: NAME, level: 'ok', text, data };
}

/** What a worker needs that polls and does not answer. */
const PROBE_FIX =
  'if that worker is running, its workflows file must export `probe`: ' +
  "export { agent, probe } from 'perdure/workflow'";

/** Returns whether a worker cannot report what is asked: which of the agents it lacks, or all it has. */
function isMute({ agents, missing }: AgentsAnswer, isBuiltIn: boolean): boolean {
  return (isBuiltIn ? agents : missing) === null;
}

function listed(all: readonly string[]): string {
  return all.map((each) => visible(each)).join(', ');
}

function unchecked(text: string, data: Finding['data']): Finding {
  return { name: NAME, level: 'skipped', text: `not checked: ${text}`, data };
}

const ANSWER_WITHIN_MS = 5_000;
/** On a full disk the server answers late or never; the check of the disk reports why. */
const FULL_WITHIN_MS = 1_000;
/** The time that workers have to answer about their agents. */
const WORKERS_WITHIN_MS = 15_000;
const HOUR_MS = 3_600_000;
/** With a shorter retention, a run may be deleted before a person reads it. */
const SHORT_HOURS = 72;

/**
 * Checks what only the server knows: the namespace, its search attributes, the workers, and
 * stranded runs.
 */
export async function serverFindings(place: CheckTarget): Promise<readonly Finding[]> {
  const { server, env } = place;
  const isFull = (await fullDiskMessage(server)) !== null;
  const timeoutMs = isFull ? FULL_WITHIN_MS : ANSWER_WITHIN_MS;
  const options = { env: connectionEnv(env, server), timeoutMs };
  try {
    const found = await withConnection(server.address, options, async (connection) => [
      await skipIfForbidden('namespace', () => retention(connection, place)),
      await skipIfForbidden('search attributes', () => attributes(connection, server)),
      await skipIfForbidden('worker', () => workers(connection, place)),
      ...(await routes(connection, place)),
    ]);
    // Workers that do not answer take longer than the server.
    const patient = { ...options, timeoutMs: timeoutMs + WORKERS_WITHIN_MS };
    const agents = await withConnection(server.address, patient, async (connection) =>
      skipIfForbidden('worker agents', () => workerAgentsFinding(connection, place)),
    );
    const tenants = place.hasTenants
      ? await withConnection(server.address, patient, async (connection) => [
          await skipIfForbidden('tenants', () => tenantsFinding(connection, server)),
        ])
      : [];
    return [...found, agents, ...tenants];
  } catch (error) {
    const text = `${server.address} cannot be queried: ${messageOf(error)}`;
    return [{ name: 'namespace', level: 'problem', text, data: {} }];
  }
}

/** Checks whether waiting runs and polling workers match, and whether runs are blocked. */
async function routes(connection: Connection, place: CheckTarget): Promise<readonly Finding[]> {
  try {
    const routing = await readRouting(connection, place);
    const client = new Client({ connection, namespace: place.server.namespace });
    return [
      strandedFinding(routing, place),
      await skipIfForbidden('blocked runs', () => blockedFinding(client, routing, place)),
      queuesFinding(routing, place),
    ];
  } catch (error) {
    const text = `not checked: ${messageOf(error)}`;
    return [{ name: 'task queues', level: 'skipped', text, data: {} }];
  }
}

/**
 * Runs a check, and returns it as skipped if it fails: a key that can start runs may lack these
 * permissions.
 */
async function skipIfForbidden(name: string, look: () => Promise<Finding>): Promise<Finding> {
  try {
    return await look();
  } catch (error) {
    return { name, level: 'skipped', text: `not checked: ${messageOf(error)}`, data: {} };
  }
}

async function retention(
  connection: Connection,
  { server: { namespace }, retained }: CheckTarget,
): Promise<Finding> {
  const hours = await retentionHours(connection, namespace);
  const data = { namespace, retentionHours: hours };
  const kept =
    hours === null ? 'retention unknown' : `keeps closed runs for ${formatSpan(hours * HOUR_MS)}`;
  const text = `${visible(namespace)}, ${kept}`;
  const longer = retained.filter(
    ({ retentionMs }) => retentionMs > (hours ?? Number.POSITIVE_INFINITY) * HOUR_MS,
  );
  const isShort = hours !== null && hours < SHORT_HOURS;
  if (!isShort && longer.length === 0) return { name: 'namespace', level: 'ok', text, data };
  const most = Math.max(720, ...longer.map(({ retentionMs }) => Math.ceil(retentionMs / HOUR_MS)));
  const agents = longer.map(({ name, retentionMs }) => `${name} (${formatSpan(retentionMs)})`);
  const fix =
    'transcripts and histories are deleted after that' +
    (longer.length === 0
      ? ''
      : `, before the \`retention\` of ${agents.join(', ')}, unless archived`) +
    '; keep them longer with: ' +
    `temporal operator namespace update -n ${shellWord(namespace)} --retention ${most}h`;
  return { name: 'namespace', level: 'note', text, fix, data };
}

async function attributes(
  connection: Connection,
  { namespace, address, pid }: ServerHandle,
): Promise<Finding> {
  const name = 'search attributes';
  const missing = await missingSearchAttributes(connection, namespace);
  const present = SEARCH_ATTRIBUTES.filter((attribute) => !missing.includes(attribute));
  const data = { present, missing };
  if (missing.length === 0) return { name, level: 'ok', text: present.join(', '), data };
  const flags = missing.map((attribute) => `--name ${attribute} --type Keyword`).join(' ');
  const fix =
    pid === null
      ? `temporal operator search-attribute create --address ${shellWord(address)} --namespace ${shellWord(namespace)} ${flags}`
      : '`run` adds them to the embedded server';
  const text = `${missing.join(', ')} missing: perdure works without them, but lists are slower and the UI cannot filter`;
  return { name, level: 'note', text, fix, data };
}

const OWN_ENVIRONMENT =
  'keys and other variables are checked in the environment of this command, and a worker has its own';

async function workers(
  connection: Connection,
  { server: { namespace }, taskQueue }: CheckTarget,
): Promise<Finding> {
  const now = Date.now();
  const pollers = await listPollers(connection, { namespace, taskQueue });
  const running = livePollers(pollers, now);
  const data = {
    taskQueue,
    workers: running.map(({ identity, lastPollAt }) => ({ identity, lastPollAt })),
  };
  const queue = `task queue "${visible(taskQueue)}"`;
  if (running.length === 0) {
    const text = `none polls ${queue}; ${HOST_THEIR_OWN}`;
    return { name: 'worker', level: 'ok', text, data };
  }
  const each = running.map(
    ({ identity, lastPollAt }) => `${visible(identity)} (last poll ${formatAgo(lastPollAt, now)})`,
  );
  const text = `${formatCount(running.length, 'worker')} on ${queue}: ${each.join(', ')}\n${OWN_ENVIRONMENT}`;
  return { name: 'worker', level: 'ok', text, data };
}
