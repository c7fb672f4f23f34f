import type { Client } from '@temporalio/client';
import { type OpenRequest, withArguments } from '../../client/requests.js';
import { decidingCommands } from '../../core/requests/commands.js';
import {
  type Standing,
  peopleAround,
  standingOf,
  withFixFor,
} from '../../core/requests/refusal.js';
import { runStatus } from '../../core/run/status.js';
import type { RunState } from '../../core/state/state.js';
import type { RunStatus } from '../../core/state/status.js';
import { recordedName, shownPeople } from '../../core/state/summaries.js';
import type { DecisionKind, Request } from '../../core/transcript/request.js';
import type { Projection } from '../../history/projection.js';
import { readRun } from '../../history/read-run.js';
import { BlobError } from '../../storage/blob-store.js';
import type { CliContext } from '../context.js';
import { formatAgo, formatSpan, oneLine, wrapped, wrappedCommand } from '../format/format.js';
import { deciderName, osUser } from '../input/option-parsers.js';
import { nextCommandFor, runnableText } from '../reports/next-command.js';
import { checkedDecisions, checkedLine, checkingHint } from './checked-decision.js';
import { hidesArguments, requestLines } from './request-lines.js';

/** The run that made a request, as it was read, and the queue of its workers. */
export interface AskingRun {
  readonly id: string;
  readonly taskQueue: string;
  readonly view: Pick<Projection, 'state'>;
  /** The name that the command was given for its user; absent: that of the operating system. */
  readonly by?: string | undefined;
}

/** Returns how the user of this program can decide about a request, under this name if they have given one. */
export function ownStanding(
  { view: { state } }: AskingRun,
  request: Request,
  by = osUser(),
): Standing {
  if (state === null) return { name: 'own', problem: null };
  const { name, problem } = standingOf(state, request, by);
  return { name, problem: problem && shownPeople(problem) };
}

/**
 * Returns the recorded name of the decider: the given name, else the user of the system. A person whom the run
 * knows, and who gives their name as it is shown, is not another person. A name that a rule lists is that of
 * the list. Throws a `UsageError` for a name that a run would refuse.
 */
export function deciderOf(
  { view: { state } }: AskingRun,
  request: Request,
  by: string | undefined,
): string {
  const name = deciderName(by);
  if (state === null || (request.deciders ?? []).flat().includes(name)) return name;
  const { requesters, joining } = peopleAround(state, request.id);
  return recordedName(name, [...requesters, ...joining]);
}

/** Returns requests whose fix is a command that the run does not refuse to the user of this program. */
export function ownFixes(
  { id: run, view: { state } }: AskingRun,
  requests: readonly Request[],
): readonly Request[] {
  if (state === null) return requests;
  const reader = { run, by: osUser(), now: Date.now() };
  return requests.map((request) => withFixFor(state, request, reader));
}

/** The most runs of which a list reads who may decide, and at once. */
const [MAX_READ, AT_ONCE] = [200, 8];

/**
 * Does the same for the requests of a list. Where rules name who may decide, only the run knows whether the user
 * of this program may; a request that cannot be read has `--by NAME`.
 */
export async function ownListed(
  client: Client,
  requests: readonly OpenRequest[],
): Promise<readonly OpenRequest[]> {
  const named = requests.filter((one) => one.deciders !== undefined && one.checking !== true);
  const runs = [...new Set(named.map(({ run }) => run))].slice(0, MAX_READ);
  const fixes = new Map<string, string>();
  for (let from = 0; from < runs.length; from += AT_ONCE) {
    await Promise.all(
      runs.slice(from, from + AT_ONCE).map(async (id) => {
        const run = await readRun(client, id).catch(() => null);
        const own = run === null ? [] : ownFixes(run, viewedRequests(run.view, id));
        for (const { digest, fix } of own) fixes.set(digest, fix);
      }),
    );
  }
  return requests.map((one) => ({ ...one, fix: fixes.get(one.digest) ?? one.fix }));
}

/** How a request is shown. */
interface ShowOptions {
  /** The stream that the lines are written to; its width applies. */
  readonly to: 'stdout' | 'stderr';
  /** Truncate nothing. */
  readonly full?: boolean;
  /** The answers follow at a prompt. */
  readonly prompts?: boolean;
}

/** A request as people see it. */
interface ShownRequest {
  readonly lines: readonly string[];
  /** Whether something of what the run will execute is left out. */
  readonly isCut: boolean;
}

/**
 * Returns a request, formatted for people, with the commands to decide on this server and queue.
 */
export async function shownRequest(
  context: CliContext,
  { run, request }: { readonly run: AskingRun; readonly request: Request },
  { to, full = false, prompts = false }: ShowOptions,
): Promise<ShownRequest> {
  const now = Date.now();
  const read = await readable(context, request);
  const command = (words: readonly string[]) => nextCommandFor(context, run, words);
  const whole = await command(['inbox', run.id, request.id, '--full']);
  const { by } = run;
  const standing = ownStanding(run, request, by && deciderOf(run, request, by));
  const isNamed = by !== undefined && standing.name === 'own';
  const commands = await Promise.all(
    decidingCommands(run.id, request, now, standing.name).map(async ({ words, purpose }) => {
      const named = isNamed ? [...words, '--by', by] : words;
      return { command: await command(named), purpose };
    }),
  );
  const { why } = read.request;
  const shown = { ...read.request, why: runnableText(context, why) };
  const width = columnsOf(to);
  const checked = request.checking ? await checkedLines(context, { run, request }, width) : null;
  const about = { run: run.id, request: shown, commands, whole, prompts, standing };
  const view = { ...read, ...about, ...(checked && { checked }) };
  const options = { width, full, now };
  return { lines: requestLines(view, options), isCut: hidesArguments(view, options) };
}

async function checkedLines(
  context: CliContext,
  { run, request }: { readonly run: AskingRun; readonly request: Request },
  width: number,
): Promise<readonly string[]> {
  const { taskQueue, view } = run;
  const agent = view.state?.config.definition.name ?? '';
  const hint = await checkingHint(context, { agent, taskQueue });
  const line = checkedLine(checkedDecisions(view.state).get(request.id));
  return [...wrapped(line, width), ...(hint === null ? [] : [oneLine(hint)])];
}

/**
 * Reads arguments from the blob store. If the store is elsewhere, `unreadable` holds the reason.
 */
export async function readable(
  context: CliContext,
  request: Request,
): Promise<{ readonly request: Request; readonly unreadable: string | null }> {
  if (!request.argumentsBlob && !request.parsedBlob) return { request, unreadable: null };
  try {
    const { blobs } = await context.stores();
    return { request: await withArguments(request, blobs), unreadable: null };
  } catch (error) {
    if (!BlobError.isInstance(error)) throw error;
    return { request, unreadable: `${error.message}; use the workers' PERDURE_HOME` };
  }
}

/** Returns the width of a terminal. A program that reads our output gets whole lines. */
export function columnsOf(stream: 'stdout' | 'stderr'): number {
  const { isTTY, columns } = process[stream];
  return isTTY ? columns || 80 : Infinity;
}

interface InboxLineOptions {
  /** The width of a line in columns. */
  readonly width: number;
  /** Unix time in ms. */
  readonly now: number;
  /** Returns the command that shows a request in full. */
  readonly show: (request: OpenRequest) => string;
  /** Returns the decision about a request that a worker has not checked yet. Default: none has any. */
  readonly checked?: (request: OpenRequest) => DecisionKind | undefined;
}

/** Returns a block of lines for each open request: what it is about, and how to see it in full. */
export function inboxLines(
  requests: readonly OpenRequest[],
  { width, now, show, checked = () => undefined }: InboxLineOptions,
): readonly string[] {
  return requests.flatMap((request, at) => {
    const { run, id, agent, kind, raisedAt, expiresAt } = request;
    const [first = '', ...rest] = request.shown.split('\n');
    const expires = expiresAt === null ? [] : [expiryText(expiresAt, now)];
    const as = checked(request);
    return [
      ...(at === 0 ? [] : ['']),
      ...wrapped(`${oneLine(id)} of run ${oneLine(run)}`, width),
      ...wrapped(`${kind}, agent ${oneLine(agent ?? 'unknown')}`, width),
      ...wrapped(oneLine(first), width),
      // Indented, so that no text can be mistaken for our own lines.
      ...rest.flatMap((line) => wrapped(`  ${oneLine(line)}`, width)),
      ...wrapped([formatAgo(raisedAt, now), ...expires].join(', '), width),
      ...(as === undefined ? [] : wrapped(checkedLine(as), width)),
      ...wrappedCommand(oneLine(show(request)), width),
    ];
  });
}

function expiryText(expiresAt: number, now: number): string {
  return expiresAt <= now ? 'has expired' : `expires in ${formatSpan(expiresAt - now)}`;
}

type Requested = Pick<RunStatus, 'status' | 'reason' | 'pending'>;

/** A cache: watching a run reads its requests several times a second, and each costs a hash. */
const known = new WeakMap<RunState, { readonly run: string; readonly status: Requested }>();

type Viewed = Pick<Projection, 'state' | 'ended' | 'cancelRequested'>;

/** Returns the open requests of a run, oldest first. `run` is the id of the run. */
export function viewedRequests(view: Viewed, run: string): readonly Request[] {
  return viewedStatus(view, run)?.pending ?? [];
}

/**
 * Returns the status of a run that has started and not ended, as `client.status` does; else null.
 */
export function viewedStatus(view: Viewed, run: string): Requested | null {
  const { state, ended, cancelRequested } = view;
  if (state === null || ended !== null) return null;
  if (cancelRequested) return { ...statusOf(state, run), pending: [] };
  return statusOf(state, run);
}

function statusOf(state: RunState, run: string): Requested {
  const found = known.get(state);
  if (found?.run === run) return found.status;
  const status = runStatus(state, { ended: null, run });
  known.set(state, { run, status });
  return status;
}
