import { decidedText, noRequest } from '../../client/requests.js';
import { toRunStatus } from '../../client/status.js';
import { RefusedError } from '../../core/errors.js';
import { SHOWN_DIGITS, commandLine, decidingCommand } from '../../core/requests/commands.js';
import { inOneLine } from '../../core/requests/presentation.js';
import { contentProblem } from '../../core/requests/refusal.js';
import { isUndoing } from '../../core/requests/undo-text.js';
import { isOpenStatus } from '../../core/state/status.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import type {
  Decision,
  DecisionKind,
  DecisionReceipt,
  Grant,
  RefusalReason,
  Request,
} from '../../core/transcript/request.js';
import { readRun } from '../../history/read-run.js';
import { resolveRequests } from '../../updates/decide.js';
import { type CliContext, CommandError, EXIT, type ExitCode, UsageError } from '../context.js';
import { formatDateTime } from '../format/format.js';
import { withWorker } from '../hosting/with-worker.js';
import { type OpenedRun, openRun, requireOpen } from '../open-run.js';
import { nextCommand, nextCommandFor } from '../reports/next-command.js';
import { refusedAfterCheck } from './decide-at-terminal.js';
import { decidedName } from './prompt.js';
import { type AskingRun, deciderOf, ownStanding, shownRequest } from './show-request.js';

/** An open request, with the run that made it. */
export interface OpenedRequest {
  readonly opened: OpenedRun;
  readonly request: Request;
}

/**
 * Reads an open request of a run by its id, or by the id of its call. Needs no worker. If there is
 * none, throws an error that lists the run's open requests.
 */
export async function openRequest(
  context: CliContext,
  run: string,
  name: string,
): Promise<OpenedRequest> {
  const opened = await openRun(context, run);
  const status = toRunStatus(opened.run, Date.now());
  const request = requestNamed(status.pending, name);
  const decided = request === undefined ? decidedText(status, name, formatDateTime) : null;
  if (decided !== null) {
    const see = await nextCommandFor(context, opened.run, ['status', run]);
    throw new CommandError(
      isOpenStatus(status.status) ? 'no_request' : 'run_ended',
      `${decided.replace(/^request: /, 'request ')}. See: ${see}`,
    );
  }
  await requireOpen(context, opened);
  if (request !== undefined) return { opened, request };
  throw new CommandError(
    'no_request',
    `${noRequest(run, name, status)}; list requests with: ${nextCommand(context, 'inbox')}`,
  );
}

/** Returns the request with this id, else the request about the call with this id. */
export function requestNamed(pending: readonly Request[], name: string): Request | undefined {
  return pending.find(({ id }) => id === name) ?? pending.find(({ call }) => call === name);
}

/** The decision of a person. */
interface DecisionInput extends Omit<Decision, 'request' | 'digest' | 'by'> {
  /** The run. */
  readonly id: string;
  /** The request, or the call that it is about. */
  readonly request: string;
  /** The digest that the person has seen, or its beginning. */
  readonly digest?: string | undefined;
  readonly by?: string | undefined;
  /** The name of the command, for messages. */
  readonly command: string;
  /** The options that the person has given, as words, except `--digest` and `--by`. */
  readonly given?: readonly string[] | undefined;
  /** Checks further conditions before the decision is sent. Throws if one is not met. */
  readonly check?: (opened: OpenedRequest) => void | Promise<void>;
}

/** Decisions that execute a call as shown, so the person must specify the digest that they saw. */
const NEED_DIGEST: readonly DecisionKind[] = ['approve', 'some', 'edit'];

/**
 * Sends a decision, bound to the whole digest of the request that the person has seen. The first
 * decision wins. Throws if the digest belongs to another request, or if the run refuses the
 * decision.
 */
export async function submitDecision(context: CliContext, input: DecisionInput): Promise<ExitCode> {
  const { id: named, request: name, digest: seen, by, command, given, check, ...what } = input;
  if (seen !== undefined) checkDigestForm(seen);
  const found = await openRequest(context, named, name);
  const { opened, request } = found;
  const { id } = opened.run;
  await checkContent(context, found, what);
  await check?.(found);
  if (seen !== undefined) checkDigest(seen, request, id);
  else if (NEED_DIGEST.includes(what.as)) {
    throw await unseen(context, found, { command, given, by });
  }
  const decision = {
    ...what,
    request: request.id,
    digest: request.digest,
    by: deciderOf(opened.run, request, by),
  };
  const starts: string[] = [];
  const receipts = await withWorker(context, opened, {
    decision: command,
    send: (start) => send(context, found, { decision, start }),
    left: (start) => starts.push(start),
  });
  const isSent = receipts.some((receipt) => receipt.checking === true);
  const checking = isSent && (starts.length > 0 || !(await isChecked(context, found)));
  const [start] = starts;
  context.note(await decisionText(context, found, { what, checking, start }));
  const grant = what.grant && !checking ? await newGrant(found) : undefined;
  if (grant !== undefined) {
    const end = await nextCommandFor(context, opened.run, ['revoke', id, grant]);
    context.note(`Grant ${visible(grant)} covers later calls; end it with: ${end}`);
  }
  if (context.options.json) {
    const { id: requestId, call = null } = request;
    const line = {
      id,
      request: requestId,
      call,
      as: what.as,
      resolved: true,
      checking,
      ...(grant !== undefined && { grant }),
    };
    context.out(JSON.stringify(line));
  }
  return EXIT.completed;
}

/** Returns the id of the grant that an approval has added; undefined if the run does not have it yet. */
async function newGrant({
  opened: { client, run },
  request,
}: OpenedRequest): Promise<string | undefined> {
  const before = new Set(run.view.state?.grants?.map(({ id }) => id));
  // The decision is made, so the command does not fail any more.
  const read = await readRun(client, run.id).catch(() => null);
  const isNew = ({ id, tool }: Grant): boolean => tool === request.tool && !before.has(id);
  return read?.view.state?.grants?.findLast(isNew)?.id;
}

/**
 * Throws a `RefusedError`, as the run would, for what no digest would help: a decision that the
 * request does not offer, or that gives what the request cannot take. It names the commands that decide.
 */
async function checkContent(
  context: CliContext,
  { opened: { run }, request }: OpenedRequest,
  what: Omit<Decision, 'request' | 'digest'>,
): Promise<void> {
  const { as } = what;
  const { id, digest, decisions } = request;
  const refused = async (reason: RefusalReason, why: string): Promise<RefusedError> => {
    const see = await nextCommandFor(context, run, ['inbox', run.id, id]);
    return new RefusedError(
      `the decision about request ${visible(id)} is refused (${reason}): ${why}. See: ${see}`,
      { reason },
    );
  };
  if (decisions.includes(as)) {
    const problem = contentProblem({ ...what, request: id, digest }, request);
    if (problem !== null) throw await refused(problem.reason, problem.message);
    return;
  }
  const { name } = ownStanding(run, request);
  // No command is called like this decision.
  const raise = decisions.includes('raise')
    ? `; raise the limit with: ${await nextCommandFor(context, run, decidingCommand(run.id, request, { as: 'raise', name }).words)}`
    : '';
  throw await refused(
    'not_offered',
    `as: expected one of ${decisions.join(', ')} for ${visible(id)}, got "${as}"${raise}`,
  );
}

/** Returns what a decision that was sent does, and the command that shows the result. */
async function decisionText(
  context: CliContext,
  { opened, request }: OpenedRequest,
  {
    what,
    checking,
    start,
  }: {
    readonly what: Pick<Decision, 'as' | 'result'>;
    readonly checking: boolean;
    /** The command that starts a worker, if none is running. */
    readonly start: string | undefined;
  },
): Promise<string> {
  const { run } = opened;
  const { id } = run;
  const isPaused = run.view.state?.paused === true;
  const effects = [
    ...(checking
      ? [
          `a worker checks the decision before it counts, and may refuse it; the result is in: ${await nextCommandFor(context, run, ['status', id])}`,
        ]
      : []),
    ...(isPaused
      ? [`the run is paused; resume it with: ${await nextCommandFor(context, run, ['resume', id])}`]
      : []),
  ];
  const undoes = isUndoing(request);
  const goesOn = effectOf(what.as, undoes);
  // A denied undo needs no worker: the call stays as it is.
  const isNow = start === undefined || (undoes && what.as === 'deny');
  const resumes = isNow ? goesOn : `${goesOn} when a worker runs`;
  const effect = effects.length === 0 ? resumes : effects.join('; ');
  // A run may wait for a message meanwhile, so there would be nothing to follow.
  const follow = undoes
    ? `See the result with: ${await nextCommandFor(context, run, ['status', id])}`
    : `Follow it with: ${await nextCommandFor(context, run, ['attach', id])}`;
  const next = start === undefined ? follow : `No worker is running. ${start}`;
  return `Decision on request ${visible(request.id)} of run ${visible(id)}: ${decidedName(request, what)}; ${effect}. ${next}`;
}

function effectOf(as: DecisionKind, undoes: boolean): string {
  if (undoes) return as === 'deny' ? 'the executed call is not undone' : 'the call is undone';
  return as === 'stop' ? 'the turn ends' : 'the run resumes';
}

/**
 * Returns the command that denies a request with a note, under a name that may decide. `by`: the name
 * that the person has given; absent: their own.
 */
export async function denyingCommand(
  context: CliContext,
  { run, request }: { readonly run: AskingRun; readonly request: Request },
  { note, by }: { readonly note: string; readonly by?: string | undefined },
): Promise<string> {
  const name = by === undefined ? ownStanding(run, request).name : 'own';
  const { words } = decidingCommand(run.id, request, { as: 'deny', name });
  // An MCP server that asks learns only that its question was declined.
  const at = words.indexOf('TEXT');
  const filled = at < 0 ? words : note === '' ? words.toSpliced(at - 1, 2) : words.with(at, note);
  return await nextCommandFor(context, run, [...filled, ...byWords(by)]);
}

/** Returns the option that names who decides, if the person has given a name. */
export function byWords(by: string | undefined): readonly string[] {
  return by === undefined ? [] : ['--by', by];
}

/** The longest wait for the check of a decision. */
const CHECK_MS = 20_000;

/**
 * Waits until a worker has checked a decision; returns false if that takes too long. Throws if the
 * decision was refused.
 */
async function isChecked(
  context: CliContext,
  { opened: { client, run }, request }: OpenedRequest,
): Promise<boolean> {
  const signal = AbortSignal.timeout(CHECK_MS);
  let refused: string | null;
  try {
    refused = await refusedAfterCheck(client, { run, request }, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return false;
  }
  if (refused === null) return true;
  const see = await nextCommandFor(context, run, ['inbox', run.id, request.id]);
  throw new RefusedError(
    `the decision about request ${visible(request.id)} is refused, and it is still open: ${visibleMessage(inOneLine(refused))}. See: ${see}`,
  );
}

/** The reasons of a refusal after which the request is not open. */
const CLOSED: readonly RefusalReason[] = ['decided', 'expired', 'unknown_request', 'run_ended'];

async function send(
  context: CliContext,
  { opened, request }: OpenedRequest,
  { decision, start }: { readonly decision: Decision; readonly start: string | null },
): Promise<readonly DecisionReceipt[]> {
  const { client, run } = opened;
  try {
    return await resolveRequests(client, run.id, decision);
  } catch (error) {
    if (!RefusedError.isInstance(error) || error.reason === null) throw error;
    // The run has no such request any more, and its status says who decided what.
    const shows = CLOSED.includes(error.reason) ? 'status' : 'inbox';
    const see = await nextCommandFor(context, run, [shows, run.id]);
    const why = error.message.replace(/^by: /, '--by: ').replace(/^request: /, '');
    const hints = [
      ...(error.reason === 'not_a_decider' && ownStanding(run, request).name !== 'none'
        ? ['; whoever may decide gives their name with --by NAME']
        : []),
      ...(error.reason === 'checking' && start !== null
        ? [`; no worker is running. ${start}`]
        : []),
    ];
    throw new Error(
      `the decision about request ${visible(request.id)} is refused (${error.reason}): ${why}${hints.join('')}. See: ${see}`,
      { cause: error },
    );
  }
}

/**
 * Shows the request, and returns an error that names the given command with the digest, or one that says that
 * no decision can be made now.
 */
async function unseen(
  context: CliContext,
  { opened, request }: OpenedRequest,
  { command, given = [], by }: Pick<DecisionInput, 'command' | 'given' | 'by'>,
): Promise<Error> {
  const { run } = opened;
  const { lines } = await shownRequest(context, { run, request }, { to: 'stderr' });
  for (const line of lines) {
    context.note(line);
  }
  if (request.checking) {
    const why = `the decision about request ${visible(request.id)} is refused (checking): another one waits for a worker to check it, as shown above`;
    return new RefusedError(why, { reason: 'checking' });
  }
  const standing = ownStanding(run, request, by);
  if (standing.name === 'none') {
    const problem = visibleMessage((standing.problem ?? '').replace(/^by: /, '--by: '));
    const why = `the decision about request ${visible(request.id)} is refused (not_a_decider): ${problem}`;
    return new RefusedError(why, { reason: 'not_a_decider' });
  }
  const words = [
    command,
    run.id,
    request.id,
    '--digest',
    request.digest.slice(0, SHOWN_DIGITS),
    ...given,
    ...byWords(standing.name === 'other' ? 'NAME' : by),
  ];
  const next = await nextCommandFor(context, run, words);
  return new UsageError(
    `--digest: expected the digest of the request that you have read, got none; after reading it, run: ${next}`,
  );
}

/**
 * Throws a `UsageError` unless `given` is a digest or a prefix of one: hex digits, at least as many
 * as are shown. Needs no server.
 */
export function checkDigestForm(given: string): void {
  if (/^[0-9a-f]+$/i.test(given) && given.length >= SHOWN_DIGITS && given.length <= 64) return;
  throw new UsageError(
    `--digest: expected ${SHOWN_DIGITS} to 64 hex digits, as shown with the request; got ${visible(given)}`,
  );
}

/** Throws if the digest that a person has seen is not that of the request of a run. */
export function checkDigest(
  given: string,
  { id, digest }: Pick<Request, 'id' | 'digest'>,
  run: string,
): void {
  checkDigestForm(given);
  if (digest.startsWith(given.toLowerCase())) return;
  throw new CommandError(
    'changed',
    `--digest: expected that of request ${visible(id)} as it is now, got ${visible(given)}; ` +
      `it may have changed; before you decide, read it again: ${commandLine('perdure', ['inbox', run, id])}`,
  );
}
