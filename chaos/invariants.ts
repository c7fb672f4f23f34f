import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import type { PerdureClient } from '../src/client/client-types.js';
import type { Outcome } from '../src/core/transcript/outcome.js';
import type { DurableEvent } from '../src/history/durable-steps.js';
import { AHEAD } from '../src/workflows/interceptors.js';
import { transcriptQuery } from '../src/workflows/messages/definitions.js';
import { consentFaults, effectFaults, reportFaults } from './effects.js';
import { historiesOf, plainText, timeOf, type History, type HistoryEvent } from './histories.js';
import type { Model } from './model.js';
import type { ChaosRun } from './traffic.js';
import type { World } from './world.js';

const MAX_EVENTS = 4_096;
const MAX_BYTES = 4 * 1024 * 1024;
/** Temporal's causes for workflow tasks that fail because events or updates arrived meanwhile. */
const EXPECTED_CAUSES = new Set([1, 31]);

interface Evidence {
  readonly client: Client;
  readonly perdure: PerdureClient;
  readonly world: World;
  readonly model: Model;
  readonly canary: string;
}

/**
 * Checks invariants I1–I4 and I6–I12 on everything that is left after a run. Returns the
 * violations.
 */
export async function violations(
  runs: readonly ChaosRun[],
  evidence: Evidence,
): Promise<readonly string[]> {
  const { world, model, canary } = evidence;
  const found: string[] = [...model.faults, ...effectFaults(world.ledger), ...partFaults(world)];
  const replayed: { workflowId: string; history: History }[] = [];
  for (const run of runs) {
    // A check that throws finds nothing, so its error counts as a violation.
    const faults = await runFaults(run, evidence, replayed).catch((error: unknown) => [
      `it could not be checked: ${String(error)}`,
    ]);
    found.push(...faults.map((fault) => `${run.id}: ${fault}`));
  }
  for await (const { workflowId, error } of Worker.runReplayHistories(
    { workflowBundle: { codePath: world.workflowBundle } },
    replayed,
  )) {
    if (error !== undefined) found.push(`${workflowId}: I10: ${error.message}`);
  }
  for (const file of await leaks(world, canary)) found.push(`I8: the canary is in ${file}`);
  return found;
}

/** Errors of the chaos run's own model, and workers that exited by themselves. */
function partFaults({ stub, workers }: World): readonly string[] {
  const faults = workers.flatMap(({ deaths }, index) =>
    deaths.map((death) => `worker ${index} ended by itself: ${death}`),
  );
  try {
    stub.assertConsumed();
  } catch (error) {
    faults.push(`the model failed: ${String(error)}`);
  }
  return faults;
}

async function runFaults(
  run: ChaosRun,
  { client, perdure, model, canary, world }: Evidence,
  replayed: { workflowId: string; history: History }[],
): Promise<readonly string[]> {
  const histories = await historiesOf(client, run.id);
  replayed.push(...histories.map((history) => ({ workflowId: run.id, history })));
  const events = histories.flatMap((history) => history.events ?? []);
  return [
    ...(run.fault === null
      ? await readerFaults(run, { client, perdure })
      : [`I12: ${run.fault}; ${await lastStatus(run, perdure)}`]),
    ...reportFaults((await perdure.transcript(run.id)).messages, world.ledger),
    ...consentFaults(run, world.ledger),
    ...run.outcomes.flatMap((outcome, index) => outcomeFaults(run, { outcome, index })),
    ...histories.flatMap((history) => repeatedCalls(history.events ?? [], model)),
    ...failedTasks(events),
    ...(run.isCancelled ? lateWork(events) : []),
    ...sizeFaults(histories),
    ...(plainText(events).includes(canary) ? ['I8: the canary is in its history'] : []),
  ];
}

async function lastStatus({ id }: ChaosRun, perdure: PerdureClient): Promise<string> {
  const { status, reason, message } = await perdure.status(id);
  return `it is ${status} (${reason}: ${message})`;
}

/** I1 and I7: each turn answers its own message, unless a person or a limit of two steps ended it. */
function outcomeFaults(
  run: ChaosRun,
  { outcome, index }: { outcome: Outcome; index: number },
): readonly string[] {
  const { status, reason, steps, answer } = outcome;
  if (run.agent === 'capped' && steps > 2) return [`I7: ${steps} steps, 2 were allowed`];
  if (status === 'cancelled' && run.isCancelled) return [];
  if (run.agent === 'capped' && status === 'stopped' && reason === 'steps') return [];
  // People may deny three calls in a row.
  if (run.agent === 'careful' && status === 'stopped' && reason === 'denied') return [];
  const expected = `answer to run ${run.number} message ${index} [`;
  if (status === 'completed' && answer?.startsWith(expected)) return [];
  return [`I1: turn ${index + 1} ended as ${status} (${reason}): ${outcome.error ?? answer}`];
}

/** I10 during the run: workflow code that failed unexpectedly. */
function failedTasks(events: readonly HistoryEvent[]): readonly string[] {
  return events.flatMap(({ workflowTaskFailedEventAttributes: failed }) =>
    failed && !EXPECTED_CAUSES.has(Number(failed.cause)) && failed.failure?.message !== AHEAD
      ? [`I10: a workflow task failed (cause ${failed.cause}): ${failed.failure?.message}`]
      : [],
  );
}

/** I1 and I11: each message has one outcome, and all readers agree on it. */
async function readerFaults(
  run: ChaosRun,
  { client, perdure }: Pick<Evidence, 'client' | 'perdure'>,
): Promise<readonly string[]> {
  const faults: string[] = [];
  const fresh: DurableEvent[] = [];
  for await (const event of perdure.events(run.id)) fresh.push(event);
  const drift = difference(fresh, run.followed);
  if (drift !== null) faults.push(`I11: a reader that followed saw something else at ${drift}`);
  const ends = fresh.flatMap((event) => (event.type === 'turn-ended' ? [event] : []));
  if (ends.length !== run.accepted.length) {
    faults.push(`I1: ${run.accepted.length} messages were accepted, ${ends.length} turns ended`);
  }
  ends.forEach(({ outcome }, index) => {
    if (!isDeepStrictEqual(outcome, run.outcomes[index])) {
      const given = JSON.stringify(run.outcomes[index]);
      faults.push(
        `I11: turn ${index + 1} ended in two ways\n  read:  ${JSON.stringify(outcome)}\n  given: ${given}`,
      );
    }
  });
  const { messages, total } = await perdure.transcript(run.id);
  for (const text of run.accepted) {
    const times = messages.filter((one) => one.role === 'user' && one.text === text).length;
    if (times !== 1) faults.push(`I1: "${text}" is in the transcript ${times} times`);
  }
  const live = await client.workflow.getHandle(run.id).query(transcriptQuery, {});
  if (live.total !== total) faults.push(`I11: ${total} messages read, ${live.total} in the run`);
  for (const message of live.messages) {
    // The run dates a message by its own clock, a reader by the server's.
    const read = messages.find(({ n }) => n === message.n);
    if (!isDeepStrictEqual({ ...read, at: 0 }, { ...message, at: 0 })) {
      const both = `\n  read:       ${JSON.stringify(read)}\n  in the run: ${JSON.stringify(message)}`;
      faults.push(`I11: message ${message.n} differs${both}`);
    }
  }
  return faults;
}

/** Returns where two readers differ, with both events in full; null if they agree. */
function difference(
  fresh: readonly DurableEvent[],
  followed: readonly DurableEvent[],
): string | null {
  const longer = fresh.length > followed.length ? fresh : followed;
  const at = longer.findIndex((_, index) => !isDeepStrictEqual(fresh[index], followed[index]));
  if (at < 0) return null;
  const show = (event: DurableEvent | undefined): string =>
    event === undefined ? 'nothing' : JSON.stringify(event);
  return (
    `event ${at} (read afresh: ${fresh.length} events, followed: ${followed.length})` +
    `\n  afresh:   ${show(fresh[at])}\n  followed: ${show(followed[at])}`
  );
}

/**
 * I3: a prompt whose reply was recorded is not sent again. Replies carry the digest of their
 * prompt. The events are those of one segment, since their numbers restart in each.
 */
function repeatedCalls(events: readonly HistoryEvent[], model: Model): readonly string[] {
  const calls = new Set(
    events.flatMap(({ eventId, activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.activityType?.name === 'callModel' ? [String(eventId)] : [],
    ),
  );
  return events.flatMap((event) => {
    const completed = event.activityTaskCompletedEventAttributes;
    if (!completed || !calls.has(String(completed.scheduledEventId))) return [];
    const [, digest = ''] = /\[([0-9a-f]{16})\]/.exec(plainText(completed.result)) ?? [];
    const arrivals = model.arrivals.get(digest);
    if (arrivals === undefined) return ['I3: a recorded reply was never given'];
    const late = arrivals.filter((at) => at > timeOf(event));
    return late.length > 0 ? [`I3: prompt ${digest} was paid for again`] : [];
  });
}

/** I6: once the workflow has seen a cancel, it schedules no model call and no tool. */
function lateWork(events: readonly HistoryEvent[]): readonly string[] {
  const asked = events.findIndex((event) => event.workflowExecutionCancelRequestedEventAttributes);
  const seen = events.findIndex(
    (event, at) => at > asked && event.workflowTaskCompletedEventAttributes,
  );
  if (asked < 0 || seen < 0) return [];
  return events.slice(seen + 1).flatMap((event) => {
    const name = event.activityTaskScheduledEventAttributes?.activityType?.name ?? '';
    return ['callModel', 'runTool'].includes(name) ? [`I6: ${name} after the cancel`] : [];
  });
}

/** I9: segments end well below the server's limits. */
function sizeFaults(histories: readonly History[]): readonly string[] {
  return histories.flatMap(({ events }) => {
    // Measured in base64, so it overestimates rather than underestimates.
    const bytes = Buffer.byteLength(JSON.stringify(events));
    const count = events?.length ?? 0;
    return count > MAX_EVENTS || bytes > MAX_BYTES ? [`I9: ${count} events, ${bytes} bytes`] : [];
  });
}

/** I8: files and logs of the workers that contain the canary. */
async function leaks({ home, workers }: World, canary: string): Promise<readonly string[]> {
  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name));
  const found: string[] = [];
  for (const file of files) if ((await readFile(file)).includes(canary)) found.push(file);
  workers.forEach(({ log }, index) => {
    if (log.some((text) => text.includes(canary))) found.push(`the log of worker ${index}`);
  });
  return found;
}
