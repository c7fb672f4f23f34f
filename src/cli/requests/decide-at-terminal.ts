import type { Interface } from 'node:readline/promises';
import type { Client } from '@temporalio/client';
import { decisionText } from '../../client/requests.js';
import { toRunStatus } from '../../client/status.js';
import { InputError, NotDeliveredError, PerdureError, RefusedError } from '../../core/errors.js';
import { planAnswerFault, shownActions } from '../../core/plan/confirm-plan.js';
import { inOneLine } from '../../core/requests/presentation.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import type { RefusalReason, Request } from '../../core/transcript/request.js';
import { followSegments } from '../../history/follow-history.js';
import type { Projection } from '../../history/projection.js';
import { type RunReading, readRun } from '../../history/read-run.js';
import { resolveRequests } from '../../updates/decide.js';
import type { CliContext } from '../context.js';
import { formatDateTime } from '../format/format.js';
import { openTerminal } from '../input/confirm.js';
import type { Hosting } from '../hosting/hosting.js';
import { nextCommandFor, runnableText } from '../reports/next-command.js';
import {
  type Decided,
  completed,
  decidedName,
  inOfferedWords,
  promptWords,
  readChoice,
  readNamed,
  readPlain,
  spelledOut,
} from './prompt.js';
import { deciderOf, ownStanding, shownRequest, viewedRequests } from './show-request.js';

/** A request that a person at the terminal is asked to decide. */
interface Asked {
  readonly run: RunReading;
  readonly request: Request;
}

/** A request that is decided here, and the name of the person who does. */
interface Prompted extends Asked {
  readonly by: string;
  /** What is typed after `later` becomes a message, as in a chat. */
  readonly takesLines: boolean;
}

/** The lines that a person types at a prompt. */
interface TypedLines {
  /** Asks a question, and returns the next line, which may have been typed after an earlier question. */
  readonly ask: (question: string) => Promise<string>;
  /**
   * Runs work in which something is shown or sent. A line that is typed before the next question could
   * approve what the person has not seen, so it is named and not taken.
   */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
  /** Hands over the lines that were typed after the last answer. */
  readonly leave: (take?: (line: string) => void) => void;
}

/**
 * Reads the lines of a terminal. Readline alone drops those that arrive while no question is open,
 * such as the second of two that are pasted.
 */
export function typedLines(
  terminal: Pick<Interface, 'question'> & Pick<NodeJS.EventEmitter, 'on'>,
  { note, signal }: { readonly note: (line: string) => void; readonly signal: AbortSignal },
): TypedLines {
  const early: string[] = [];
  let isOpen = false;
  const refuse = (line: string): void => {
    if (line.trim() === '') return;
    note(`Not read, since no question was open: ${visible(line)}. Type it again if you are asked.`);
  };
  terminal.on('line', (line: string) => {
    if (isOpen) early.push(line);
    else refuse(line);
  });
  return {
    async ask(question) {
      isOpen = true;
      const line = early.shift();
      if (line === undefined) return await terminal.question(`${question} `, { signal });
      signal.throwIfAborted();
      note(`${question} ${visible(line)}`);
      return line;
    },
    async during(work) {
      isOpen = false;
      for (const line of early.splice(0)) refuse(line);
      return await work();
    },
    leave(take = refuse) {
      for (const line of early.splice(0)) take(line);
    },
  };
}

/** What ends a prompt from outside, beside the end of its request. */
interface PromptEnds {
  readonly interrupt: AbortSignal;
  /** The worker of this process, which may die. */
  readonly hosting: Pick<Hosting, 'died'>;
  /** Takes a line that was typed right after `later`. Default: it is said that it was not read. */
  readonly onLine?: ((line: string) => void) | undefined;
}

/**
 * Shows an open request of a run on the terminal and asks for a decision, which is bound to the
 * digest of what was shown. Returns at once if the run has no such request; otherwise when the person
 * has decided, wants to decide later, or may not decide, or when the request is closed elsewhere. An
 * interrupt ends the prompt, and so does the end of the worker in this process.
 */
export async function promptForDecision(
  context: CliContext,
  client: Client,
  {
    id,
    digest,
    by: given,
  }: { readonly id: string; readonly digest: string; readonly by?: string | undefined },
  { interrupt, hosting: { died }, onLine }: PromptEnds,
): Promise<void> {
  const run = await readRun(client, id);
  const { pending } = toRunStatus(run, Date.now());
  const request = pending.find((open) => open.digest === digest);
  // Another person may have decided in the meantime.
  if (request === undefined) return;
  const by = deciderOf(run, request, given);
  const prompted: Prompted = { run, request, by, takesLines: onLine !== undefined };
  if (ownStanding(run, request, by).name !== 'own') {
    await show(context, prompted, { full: false, prompts: false });
    context.note('The run waits for a person who may decide.');
    return;
  }
  const closed = new AbortController();
  const outside = AbortSignal.any([interrupt, died]);
  const gone = untilGone(client, prompted, AbortSignal.any([outside, closed.signal]));
  const over = new AbortController();
  gone.catch(() => undefined).finally(() => over.abort());
  // Ctrl-D decides as little as `later`.
  const { terminal, left } = openTerminal();
  const signal = AbortSignal.any([outside, over.signal, left]);
  const typed = typedLines(terminal, { note: context.note, signal });
  try {
    const isCut = await show(context, prompted, { full: false, prompts: true });
    await askUntilDecided(context, client, prompted, { typed, signal: outside, isCut });
    typed.leave(onLine);
  } catch (error) {
    if (!signal.aborted) throw error;
    if (interrupt.aborted) return;
    // The line of the question is not complete.
    context.note('');
    // The watch of the run reports what our worker has died of.
    if (died.aborted) return;
    if (over.signal.aborted) context.note(goneText(request, await gone));
    else await noteLater(context, prompted);
  } finally {
    closed.abort();
    terminal.close();
  }
}

/** Asks until a decision is accepted or cannot be made, or until the person wants to decide later. */
async function askUntilDecided(
  context: CliContext,
  client: Client,
  prompted: Prompted,
  {
    typed,
    signal,
    isCut,
  }: { readonly typed: TypedLines; readonly signal: AbortSignal; readonly isCut: boolean },
): Promise<void> {
  const seen = { isCut };
  for (;;) {
    const decided = await askFor(context, prompted, { typed, seen });
    if (decided === null) return await noteLater(context, prompted);
    const refused = await typed.during(
      async () => await send(context, client, prompted, { decided, signal }),
    );
    if (refused === null) return;
    context.note(
      `The decision was not accepted: ${visibleMessage(inOfferedWords(runnableText(context, inOneLine(refused)), prompted.request))}`,
    );
  }
}

async function noteLater(
  context: CliContext,
  { run, request, takesLines }: Prompted,
): Promise<void> {
  const see = await nextCommandFor(context, run, ['inbox', run.id, request.id]);
  context.note(`The run waits. Decide later with the commands shown by: ${see}`);
  context.note('This command waits, too; Ctrl-C leaves the run to itself.');
  if (takesLines) context.note('A line that you type now is sent once the run can take it.');
}

interface Asking {
  readonly typed: TypedLines;
  /** Whether some of the request has not been shown so far. */
  readonly seen: { isCut: boolean };
}

/** Returns the line that says how a request was closed elsewhere. */
function goneText({ id }: Request, view: Projection | null): string {
  const how = view?.state ? decisionText(view.state, id, formatDateTime) : null;
  return `Request ${visible(id)} ${how ?? 'is no longer open'}.`;
}

/** Shows a request; returns whether some of it is left out. */
async function show(
  context: CliContext,
  prompted: Asked,
  how: { readonly full: boolean; readonly prompts: boolean },
): Promise<boolean> {
  const { lines, isCut } = await shownRequest(context, prompted, { to: 'stderr', ...how });
  for (const line of ['', ...lines]) context.note(line);
  return isCut;
}

/**
 * Asks until the person has decided. Returns null for `later`. What is executed as the request says needs
 * to be shown in full first.
 */
async function askFor(
  context: CliContext,
  prompted: Asked,
  { typed, seen }: Asking,
): Promise<Decided | null> {
  const { request } = prompted;
  const { ask } = typed;
  const choices = promptWords(request).join(' / ');
  for (;;) {
    const line = spelledOut(await ask(`${choices}?`), request);
    const plain = readPlain(line, request) ?? readNamed(line, request);
    if (typeof plain === 'string') {
      context.note(plain);
      continue;
    }
    const choice = plain?.as ?? readChoice(line, request);
    if (choice === 'later') return null;
    if (choice === 'full') {
      seen.isCut = await typed.during(
        async () => await show(context, prompted, { full: true, prompts: true }),
      );
      if (seen.isCut) context.note('It cannot be approved here, since not all of it can be shown.');
    } else if (choice === null) context.note(unclearLine(request, { line, choices }));
    else {
      // A denial without a reason is asked for it.
      const isWhole = plain !== null && (plain.as !== 'deny' || plain.note !== undefined);
      const decided = isWhole
        ? plain
        : await completed({ as: choice, request }, { ask, note: context.note });
      if (decided !== null && seen.isCut && isExecuting(request, decided)) {
        context.note(
          'Some of it is not shown yet: type "full" to read all of it, and then decide.',
        );
      } else if (decided !== null) return decided;
    }
  }
}

/** Whether a call or a plan is executed after a decision, as the request shows it. */
function isExecuting(request: Request, decided: Decided): boolean {
  const name = decidedName(request, decided);
  // The call of a server that asks goes on with the answer.
  return EXECUTES.includes(name) || (name === 'answer' && request.server !== undefined);
}

const EXECUTES: readonly string[] = ['approve', 'some', 'retry', 'accept'];

/** Returns a hint about valid answers, for a line that is not one. */
function unclearLine(
  request: Request,
  { line, choices }: { readonly line: string; readonly choices: string },
): string {
  const actions = request.kind === 'plan' ? shownActions(request.arguments ?? '') : null;
  const fault = actions === null ? null : planAnswerFault(line, actions);
  const ids =
    actions === null ? '' : ` (the actions are ${actions.map(({ id }) => id).join(', ')})`;
  return `${fault === null ? '' : `${visible(fault)}. `}Type one of: ${choices}${ids}`;
}

/** After these refusals, the request as shown can no longer be decided by this person. */
const FINAL: readonly RefusalReason[] = [
  'decided',
  'expired',
  'unknown_request',
  'wrong_digest',
  'not_a_decider',
  'run_ended',
];

/** Returns whether another decision about the same request may be accepted after an error. */
function canDecideAgain(error: PerdureError): boolean {
  if (!RefusedError.isInstance(error)) {
    return InputError.isInstance(error) || NotDeliveredError.isInstance(error);
  }
  return error.reason !== null && !FINAL.includes(error.reason);
}

/** Sends a decision. Returns why it was refused if it can be made again; else null. */
async function send(
  context: CliContext,
  client: Client,
  prompted: Prompted,
  { decided, signal }: { readonly decided: Decided; readonly signal: AbortSignal },
): Promise<string | null> {
  const { run, request, by } = prompted;
  const { id, digest } = request;
  const decision = { ...decided, request: id, digest, by };
  let checking: boolean;
  try {
    const [receipt] = await resolveRequests(client, run.id, decision);
    checking = receipt?.checking === true;
  } catch (error) {
    if (!PerdureError.isInstance(error)) throw error;
    if (canDecideAgain(error)) return error.message;
    context.note(
      `The decision was not accepted: ${visibleMessage(runnableText(context, error.message))}`,
    );
    return null;
  }
  if (checking) {
    context.note('The decision counts once a worker has checked it.');
    const refused = await refusedAfterCheck(client, prompted, signal);
    if (refused !== null) return refused;
  }
  const made = [decidedName(request, decided), ...(decided.actions ?? [])].join(' ');
  context.note(`Decision on request ${visible(id)}: ${visible(made)}.`);
  return null;
}

/**
 * Waits until a worker has checked a decision; returns why it was refused, or null. Throws the
 * signal's reason if that aborts before.
 */
export async function refusedAfterCheck(
  client: Client,
  { run: { id }, request }: Asked,
  signal: AbortSignal,
): Promise<string | null> {
  // Read after the decision was accepted, so it has the decision.
  const run = await readRun(client, id);
  const known = answerIn(openIn(run.view, { run, request }));
  if (known !== undefined) return known;
  for await (const { open } of followRequest(client, { run, request }, signal)) {
    const answer = answerIn(open);
    if (answer !== undefined) return answer;
  }
  // The signal ends the loop, and then nothing is known of the check.
  signal.throwIfAborted();
  return null;
}

/** Returns why a worker has refused a decision, or null; undefined while it is being checked. */
function answerIn(open: Request | null): string | null | undefined {
  return open?.checking === true ? undefined : (open?.refused ?? null);
}

/** Resolves with the run when its request is closed, or with null if the signal aborts. */
async function untilGone(
  client: Client,
  prompted: Asked,
  signal: AbortSignal,
): Promise<Projection | null> {
  for await (const { open, view } of followRequest(client, prompted, signal)) {
    if (open === null) return view;
  }
  return null;
}

/** A request with the newest state of its run; `open` is null once it is closed. */
interface FollowedRequest {
  readonly open: Request | null;
  readonly view: Projection;
}

/** Follows a request through the segments of its run, until the run ends or the signal aborts. */
async function* followRequest(
  client: Client,
  prompted: Asked,
  signal: AbortSignal,
): AsyncGenerator<FollowedRequest, void, undefined> {
  const { id, runId, view: start } = prompted.run;
  for await (const next of followSegments(client, { id, runId, signal })) {
    const { view } = next;
    // The history is read from its beginning.
    if (next.runId === runId && view.lastEvent < start.lastEvent) continue;
    // Between two segments, nothing is known of the request.
    if (view.ended === null ? view.state === null : view.ended.how === 'continued') continue;
    yield { open: openIn(view, prompted), view };
  }
}

function openIn(view: Projection, { run, request }: Asked): Request | null {
  return viewedRequests(view, run.id).find(({ digest }) => digest === request.digest) ?? null;
}
