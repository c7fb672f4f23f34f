import type { WorkflowHandle } from '@temporalio/client';
import type { PerdureClient } from '../client/client-types.js';
import { toRunStatus } from '../client/status.js';
import type { RunStatus } from '../core/state/status.js';
import { type Json, isObject } from '../core/text/json.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { readRun } from '../history/read-run.js';
import { type RunTranscript, readTranscript } from '../history/run-transcript.js';
import type { ModelRequest } from '../models/model.js';
import type { Archive } from '../storage/blob-store.js';
import type { Deciders } from '../core/definition/rules.js';
import { InputError } from '../core/errors.js';
import { formatCount, show, toMs, formatDuration } from '../core/text/text.js';
import { likelyMeant } from '../validation/near-names.js';
import { assertAction, isMaker } from '../testing/actions.js';
import type { DecisionKind, Request } from '../core/transcript/request.js';
import { isHopeless } from './activities.js';
import { type MemoryHost, allSegments } from './host.js';
import type { MemoryEffect, Observed } from './observe.js';
import {
  type MemoryRequest,
  type Script,
  type ScriptParts,
  type Stage,
  nextWhenQuiet,
  placesOf,
  react,
} from './script.js';
import { assertFaults } from './faults.js';
import { type Segment, isClosed } from './segment.js';
import type { MemoryServer } from './server.js';

/** The history of one segment of a run. */
export interface MemoryHistory {
  readonly id: string;
  readonly runId: string;
  /** In the form in which Temporal's client returns a history. */
  readonly history: Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
}

/** A run that has ended, or that waits for a message which the script does not send. */
export interface MemoryRun<Output = Json> {
  readonly id: string;
  /** The outcome of the run; of an open run, that of its latest turn. */
  readonly outcome: Outcome<Output>;
  readonly status: RunStatus;
  readonly transcript: RunTranscript;
  /** What each model call asked, of all agents, in order. */
  readonly modelRequests: readonly ModelRequest[];
  /** The executed tool calls of all agents, in order, including those whose results were lost. */
  readonly effects: readonly MemoryEffect[];
  /** The requests to people, of all agents, in order. */
  readonly requests: readonly MemoryRequest[];
  /** The virtual time from the start to the end, in ms. */
  readonly clock: number;
  /** The Temporal histories of the run and of the runs that it called, segment by segment. */
  readonly history: readonly MemoryHistory[];
  /**
   * What the run left over of its script, in words: replies of a list, and what `on.request` and
   * `on.waiting` say. Empty if it used everything.
   */
  readonly unused: readonly string[];
  /** The lists of replies that were too short for the run, in words. Empty if all had enough. */
  readonly missing: readonly string[];
}

/** A run that may wait for something that is not scripted. */
export type PartialRun = Omit<MemoryRun, 'outcome'> & { readonly outcome: Outcome | null };

/** Reads what a run in memory has left; its archive is read where a history has ended. */
export async function resultOf(
  host: MemoryHost,
  {
    client,
    id,
    script,
    observed,
    startAt,
    archive,
    isOver,
  }: {
    readonly client: PerdureClient;
    readonly archive: Archive;
    readonly id: string;
    readonly script: Script;
    readonly observed: Observed;
    readonly startAt: number;
    readonly isOver: boolean;
  },
): Promise<PartialRun> {
  // One reading of the history serves for all.
  const reading = await readRun(host.client, id);
  const status = withScripts(toRunStatus(reading, host.server.clock.now()));
  const outcome = status.outcome ?? (isOver ? await client.result(id) : null);
  return {
    id,
    outcome,
    status,
    transcript: await readTranscript(host.client, reading, { side: true, archive }),
    modelRequests: observed.modelRequests,
    effects: observed.effects,
    requests: [...script.requests.values()].map(({ run, request, decided }) => ({
      ...request,
      run,
      decided,
    })),
    clock: host.server.clock.now() - startAt,
    history: allSegments(host.server).map(({ workflowId, runId, events }) => ({
      id: workflowId,
      runId,
      history: { events: [...events] },
    })),
    unused: unusedIn(script),
    missing: missingIn(script),
  };
}

const MOMENTS = ['request', 'call', 'step', 'waiting'];

/** Throws an `InputError` for a part of a script that would have no effect. */
export function assertScript({ on = {}, at = {}, faults = [] }: ScriptParts): void {
  for (const [moment, entries] of Object.entries(on)) {
    if (!MOMENTS.includes(moment)) throw unexpected('on', `one of ${MOMENTS.join(', ')}`, moment);
    const all: unknown = moment === 'waiting' ? { waiting: entries } : entries;
    for (const [name, entry] of Object.entries(isObject(all) ? all : {})) {
      const list: readonly unknown[] = Array.isArray(entry) ? entry : [entry];
      for (const one of list) {
        const isReaction = moment === 'request' && typeof one === 'function' && !isMaker(one);
        const place = moment === 'waiting' ? 'on.waiting' : `on.${moment}.${name}`;
        if (!isReaction) assertAction(place, one);
      }
    }
  }
  for (const [delay, entry] of Object.entries(at)) {
    const ms = toMs(delay);
    if (!(ms >= 0)) throw unexpected('at', 'a time after the start such as "3 days"', delay);
    for (const one of Array.isArray(entry) ? entry : [entry]) assertAction(`at["${delay}"]`, one);
  }
  assertFaults(faults);
}

function unexpected(field: string, what: string, value: unknown): InputError {
  return new InputError(`${field}: expected ${what}, got ${show(value)}`);
}

/** Returns the places at which something was to happen, and where it did not. */
export function missedIn(script: Script): readonly string[] {
  const { on, at, faults, firedFaults } = script;
  return [
    ...faults.flatMap((fault, index) =>
      firedFaults.has(fault) ? [] : [`faults[${index}]: ${show(fault)}`],
    ),
    ...Object.entries(on.call ?? {}).flatMap(([tool, entry]) =>
      leftOf(script, `call ${tool}`, entry).map((left) => `on.call.${tool}: ${left}`),
    ),
    ...Object.keys(on.step ?? {}).flatMap((step) =>
      missed(script, `step ${step}`).map((left) => `on.step[${step}]${left}`),
    ),
    ...Object.keys(at).flatMap((delay) =>
      missed(script, `at ${delay}`).map((left) => `at["${delay}"]${left}`),
    ),
  ];
}

/** Returns what the run left over of what was there for it. */
function unusedIn(script: Script): readonly string[] {
  const { on, replies } = script;
  const requests = Object.entries(on.request ?? {}).filter(([name]) => name !== '*');
  return [
    ...replies.flatMap(({ place, given, used: count }) =>
      count() >= given ? [] : [`${place}: ${given - count()} of ${given} replies`],
    ),
    ...requests.flatMap(([name, entry]) =>
      leftOf(script, `request ${name}`, entry).map((left) => `on.request.${name}: ${left}`),
    ),
    ...leftOf(script, 'waiting', on.waiting ?? []).map((left) => `on.waiting: ${left}`),
  ];
}

/** Returns which lists of replies the run has asked for more than they have. */
function missingIn({ replies }: Script): readonly string[] {
  return replies.flatMap(({ place, given, used: count }) =>
    count() <= given
      ? []
      : [
          `${place}: the model was asked ${formatCount(count(), 'time')}; the script has ${formatCount(given, 'reply', 'replies')}`,
        ],
  );
}

const TOO_SHORT = 'the run ended before the time of its after(…)';

/** Returns what is left of an entry; a delayed action counts when it has come. */
function leftOf({ used, delayed }: Script, place: string, entry: unknown): readonly string[] {
  const given = Array.isArray(entry) ? entry.length : 1;
  const late = delayed.get(place) ?? 0;
  const count = (used.get(place) ?? 0) - late;
  if (count >= given) return [];
  const left = given === 1 ? 'never used' : `${given - count} of ${given} entries`;
  return [late === 0 ? left : `${left}; ${TOO_SHORT}`];
}

/** Returns whether an entry that has no list was missed, as the rest of a line. */
function missed({ used, delayed }: Script, place: string): readonly string[] {
  if (!used.has(place)) return [''];
  return (delayed.get(place) ?? 0) > 0 ? [`: ${TOO_SHORT}`] : [];
}

/** The run cannot go on: it waits for something that does not come. */
export class DeadlockError extends Error {}

/** Lets the run go on until it has ended, or until it waits for a message that nobody sends. */
export async function play(
  { server, pace, client }: MemoryHost,
  {
    script,
    stage,
    until,
  }: { readonly script: Script; readonly stage: Stage; readonly until: number },
): Promise<void> {
  const { clock } = server;
  for (;;) {
    await pace.idle();
    const main = server.runs.get(stage.id)?.at(-1);
    if (main === undefined || isClosed(main)) return;
    const open = await openRequests(server.runs.values(), (id) =>
      client.workflow.getHandle(id).query<readonly Request[]>('pending'),
    );
    let hasReacted = false;
    for (const one of open) hasReacted = (await react(script, stage, one)) || hasReacted;
    if (hasReacted) continue;
    const status = withScripts(
      await client.workflow.getHandle(stage.id).query<RunStatus>('status'),
    );
    const isWaiting = status.status === 'waiting_message';
    if (await nextWhenQuiet(script, stage, isWaiting)) continue;
    const hasScript = clock.pending().some(({ kind }) => kind === 'script');
    if (isWaiting && !hasScript) return;
    const stuck = deadlock({ server, status, open, script, until });
    if (stuck !== null) throw new DeadlockError(stuck);
    clock.advance();
  }
}

interface OpenRequest {
  readonly run: string;
  readonly request: Request;
}

async function openRequests(
  runs: Iterable<readonly Segment[]>,
  pendingOf: (id: string) => Promise<readonly Request[]>,
): Promise<readonly OpenRequest[]> {
  const all: OpenRequest[] = [];
  for (const segments of runs) {
    const last = segments.at(-1);
    if (last === undefined || isClosed(last) || last.workflowType !== 'agent') continue;
    for (const request of await pendingOf(last.workflowId)) {
      all.push({ run: last.workflowId, request: { ...request, fix: scriptFix(request) } });
    }
  }
  return all;
}

/** Returns the status with scripts in place of commands, in its message and its requests: no command can reach the run. */
function withScripts<Status extends Pick<RunStatus, 'message' | 'pending'>>(
  status: Status,
): Status {
  const { message, pending } = status;
  const all = pending.map((request) => ({ ...request, fix: scriptFix(request) }));
  const text = pending.reduce(
    (left, { fix }, index) => left?.replace(fix, () => all[index]?.fix ?? '') ?? null,
    message,
  );
  return { ...status, message: text, pending: all };
}

/** How a script makes the first decision that a request offers. `by`: an option that it needs, else empty. */
const CALLS: Readonly<Partial<Record<DecisionKind, (by: string) => string>>> = {
  approve: (by) => `approve(${by && `{ ${by} }`})`,
  answer: (by) => `answer(…${by && `, { ${by} }`})`,
  deny: (by) => `deny(${by && `{ ${by} }`})`,
  raise: (by) => `decision({ as: 'raise', arguments: { … }${by && `, ${by}`} })`,
};

type Scripted = Pick<Request, 'kind' | 'tool' | 'decisions'> & Partial<Pick<Request, 'deciders'>>;

/** Returns the entry of `on.request` that would decide. */
function entryFor(request: Scripted): string {
  const [key = '*'] = placesOf(request);
  const [as = 'deny'] = request.decisions;
  const name = /^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key);
  const [decider] = request.deciders ?? [];
  const by = decider === undefined ? '' : `by: ${nameIn(decider)}`;
  const made = CALLS[as] ?? (() => `decision({ as: '${as}'${by && `, ${by}`} })`);
  return `{ ${name}: ${made(by)} }`;
}

/** Returns a person whom a rule names, as code; a placeholder where it names none. */
function nameIn(deciders: Deciders): string {
  const names = typeof deciders === 'string' ? [] : deciders;
  const name = names.find((one) => !one.startsWith('group:'));
  return name === undefined ? "'…'" : JSON.stringify(name);
}

/** What the author of a test does about a request, in place of a command. */
function scriptFix(request: Scripted): string {
  return `script it with \`on.request: ${entryFor(request)}\``;
}

/** Returns why the run cannot go on; null if time alone may help. */
function deadlock({
  server,
  status,
  open,
  script,
  until,
}: {
  readonly server: MemoryServer;
  readonly status: Pick<RunStatus, 'status' | 'reason' | 'message'>;
  readonly open: readonly { readonly run: string; readonly request: Request }[];
  readonly script: Script;
  /** The Unix time in ms at which the run has taken too long. */
  readonly until: number;
}): string | null {
  const { clock, activities } = server;
  const pending = [...activities.pending.values()].flatMap((all) => [...all.values()]);
  const hasHopeless = pending.some(isHopeless);
  const next = clock
    .pending()
    .find(({ kind }) => kind !== 'timeout' && (kind !== 'retry' || !hasHopeless));
  const last = next?.kind === 'workflow' ? (script.moments?.until ?? until) : until;
  if (next !== undefined && next.at <= Math.min(last, until)) return null;
  const { reason, message } = status;
  const why = [status.status, reason, message].filter((one) => one !== null).join(': ');
  const [first] = open;
  if (first !== undefined && (next === undefined || last < until))
    return openRequest(first, script);
  if (next === undefined) return `the run cannot go on, and no script changes that: ${why}`;
  const late = formatDuration(next.at - until, { as: 'exact' });
  return `the run takes too long: the next event comes ${late} after the end of \`within\`: ${why}`;
}

function openRequest(
  { run, request }: { readonly run: string; readonly request: Request },
  { requests, on, used }: Script,
): string {
  const { id, kind, tool, shown, decisions } = request;
  const seen = requests.get(`${run} ${id}`);
  const refused = seen?.decided.findLast((one) => one.refused)?.refused;
  const what = `request ${id} (${kind}${tool === undefined ? '' : ` of ${tool}`})`;
  const [key = kind] = placesOf(request);
  const unmatched = Object.keys(on.request ?? {}).filter((name) => !used.has(`request ${name}`));
  const meant = likelyMeant(key, unmatched);
  const none =
    meant === undefined
      ? 'no script decides it'
      : `no script decides it, and no request has matched on.request.${meant} (nearest: ${key})`;
  const left = seen?.isWaiting ? 'the script leaves it open, and it does not expire' : none;
  const why = refused === undefined ? left : `the decision was refused: ${refused}`;
  const fix = refused === undefined ? 'add it to' : 'correct the entry in';
  return (
    `run ${run} waits for a decision: ${what}: ${why}; it takes ${decisions.join(', ')}: ` +
    `${fix} \`on.request\`, such as ${entryFor(request)}\nThe request says:\n${shown}`
  );
}
