import { shellWord } from '../../core/text/shell.js';
import type { Connection } from '@temporalio/client';
import { livePollers, listPollers } from '../../temporal/pollers.js';
import { visible } from '../../core/text/summaries.js';
import { SEARCH_ATTRIBUTES } from '../../temporal/search-attributes.js';
import { missingSearchAttributes, retentionHours } from '../../server/namespace.js';
import { withConnection } from '../../server/probe.js';
import { messageOf } from '../../server/server-error.js';
import type { ServerHandle } from '../../server/server-handle.js';
import { fullDiskMessage } from '../hosting/full-disk.js';
import { connectionEnv } from '../hosting/open-server.js';
import { formatAgo, formatSpan } from '../format/format-time.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';
import type { CheckTarget } from './place.js';
import { queuesFinding } from './queues.js';
import { readRouting } from './routing.js';
import { strandedFinding } from './stranded.js';
import { workerAgentsFinding } from './worker-agents.js';

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
      await skipIfForbidden('namespace', () => retention(connection, server)),
      await skipIfForbidden('search attributes', () => attributes(connection, server)),
      await skipIfForbidden('worker', () => workers(connection, place)),
      ...(await routes(connection, place)),
    ]);
    // Workers that do not answer take longer than the server.
    const patient = { ...options, timeoutMs: timeoutMs + WORKERS_WITHIN_MS };
    const agents = await withConnection(server.address, patient, async (connection) =>
      skipIfForbidden('worker agents', () => workerAgentsFinding(connection, place)),
    );
    return [...found, agents];
  } catch (error) {
    const text = `${server.address} cannot be queried: ${messageOf(error)}`;
    return [{ name: 'namespace', level: 'problem', text, data: {} }];
  }
}

/** Checks whether waiting runs and polling workers match. */
async function routes(connection: Connection, place: CheckTarget): Promise<readonly Finding[]> {
  try {
    const routing = await readRouting(connection, place);
    return [strandedFinding(routing, place), queuesFinding(routing, place)];
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

async function retention(connection: Connection, { namespace }: ServerHandle): Promise<Finding> {
  const hours = await retentionHours(connection, namespace);
  const data = { namespace, retentionHours: hours };
  const kept =
    hours === null ? 'retention unknown' : `keeps closed runs for ${formatSpan(hours * HOUR_MS)}`;
  const text = `${visible(namespace)}, ${kept}`;
  if (hours === null || hours >= SHORT_HOURS) return { name: 'namespace', level: 'ok', text, data };
  const fix =
    'transcripts and histories are deleted after that; keep them longer with: ' +
    `temporal operator namespace update -n ${shellWord(namespace)} --retention 720h`;
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
    const text = `none polls ${queue}; \`run\` and \`attach\` host their own`;
    return { name: 'worker', level: 'ok', text, data };
  }
  const each = running.map(
    ({ identity, lastPollAt }) => `${visible(identity)} (last poll ${formatAgo(lastPollAt, now)})`,
  );
  const text = `${formatCount(running.length, 'worker')} on ${queue}: ${each.join(', ')}`;
  return { name: 'worker', level: 'ok', text, data };
}
