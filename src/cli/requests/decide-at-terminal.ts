import { createInterface } from 'node:readline/promises';
import type { Client } from '@temporalio/client';
import { decisionText } from '../../client/requests.js';
import { toRunStatus } from '../../client/status.js';
import { InputError, NotDeliveredError, PerdureError, RefusedError } from '../../core/errors.js';
import { shownActions } from '../../core/plan/confirm-plan.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import type { RefusalReason, Request } from '../../core/transcript/request.js';
import { followSegments } from '../../history/follow-history.js';
import type { Projection } from '../../history/projection.js';
import { type RunReading, readRun } from '../../history/read-run.js';
import { resolveRequests } from '../../updates/decide.js';
import type { CliContext } from '../context.js';
import type { Hosting } from '../hosting/hosting.js';
import { osUser } from '../input/option-parsers.js';
import { nextCommandFor } from '../reports/next-command.js';
import { type Decided, completed, readChoice, readPlain, wordsOf } from './prompt.js';
import { ownStanding, shownRequest, viewedRequests } from './show-request.js';

/** A request that a person at the terminal is asked to decide. */
interface Prompted {
  readonly run: RunReading;
  readonly request: Request;
}

/** What ends a prompt from outside, beside the end of its request. */
interface PromptEnds {
  readonly interrupt: AbortSignal;
  /** The worker of this process, which may die. */
  readonly hosting: Pick<Hosting, 'died'>;
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
  { id, digest }: { readonly id: string; readonly digest: string },
  { interrupt, hosting: { died } }: PromptEnds,
): Promise<void> {
  const run = await readRun(client, id);
  const { pending } = toRunStatus(run, Date.now());
  const request = pending.find((open) => open.digest === digest);
  // Another person may have decided in the meantime.
  if (request === undefined) return;
  const prompted: Prompted = { run, request };
  if (ownStanding(run, request).name !== 'own') {
    await show(context, prompted, { full: false, prompts: false });
    context.note('The run waits for a person who may decide.');
    return;
  }
  const closed = new AbortController();
  const outside = AbortSignal.any([interrupt, died]);
  const gone = untilGone(client, prompted, AbortSignal.any([outside, closed.signal]));
  const over = new AbortController();
  gone.catch(() => undefined).finally(() => over.abort());
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Readline intercepts Ctrl-C, so this passes it on to the process.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const left = new AbortController();
  // Ctrl-D closes the terminal, and decides as little as `later`.
  terminal.once('close', () => left.abort());
  const signal = AbortSignal.any([outside, over.signal, left.signal]);
  const ask = async (question: string): Promise<string> =>
    await terminal.question(`${question} `, { signal });
  try {
    await show(context, prompted, { full: false, prompts: true });
    await askUntilDecided(context, client, prompted, { ask, signal: outside });
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
  { ask, signal }: { readonly ask: Ask; readonly signal: AbortSignal },
): Promise<void> {
  for (;;) {
    const decided = await askFor(context, prompted, ask);
    if (decided === null) return await noteLater(context, prompted);
    const refused = await send(context, client, prompted, { decided, signal });
    if (refused === null) return;
    context.note(`The decision was not accepted: ${visible(refused)}`);
  }
}

async function noteLater(context: CliContext, { run, request }: Prompted): Promise<void> {
  const see = await nextCommandFor(context, run, ['inbox', run.id, request.id]);
  context.note(`The run waits. Decide later with the commands shown by: ${see}`);
  context.note('This command waits, too; Ctrl-C leaves the run to itself.');
}

/** Asks a question at the terminal, and returns the line. */
type Ask = (question: string) => Promise<string>;

/** Returns the line that says how a request was closed elsewhere. */
function goneText({ id }: Request, view: Projection | null): string {
  const how = view?.state ? decisionText(view.state, id) : null;
  return `Request ${visible(id)} ${how ?? 'is no longer open'}.`;
}

async function show(
  context: CliContext,
  prompted: Prompted,
  how: { readonly full: boolean; readonly prompts: boolean },
): Promise<void> {
  context.note('');
  for (const line of await shownRequest(context, prompted, { to: 'stderr', ...how })) {
    context.note(line);
  }
}

/** Asks until the person has decided. Returns null for `later`. */
async function askFor(context: CliContext, prompted: Prompted, ask: Ask): Promise<Decided | null> {
  const { request } = prompted;
  const choices = wordsOf(request).join(' / ');
  for (;;) {
    const line = await ask(`${choices}?`);
    const plain = readPlain(line, request);
    // A denial is asked for its reason.
    if (plain !== null && plain.as !== 'deny') return plain;
    const choice = plain?.as ?? readChoice(line, request);
    if (choice === 'later') return null;
    if (choice === 'full') await show(context, prompted, { full: true, prompts: true });
    else if (choice === null) context.note(unclearLine(request, choices));
    else {
      const decided = await completed({ as: choice, request }, { ask, note: context.note });
      if (decided !== null) return decided;
    }
  }
}

/** Returns a hint about valid answers, for a line that is not one. */
function unclearLine(request: Request, choices: string): string {
  const actions = request.kind === 'plan' ? shownActions(request.arguments ?? '') : null;
  const ids = actions?.map(({ id }) => id).join(', ');
  return `Type one of: ${choices}${ids === undefined ? '' : ` (the actions are ${ids})`}`;
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
  const { run, request } = prompted;
  const { id, digest, kind } = request;
  const isEdit = kind === 'plan' && decided.as === 'answer';
  const decision = { ...decided, request: id, digest, by: osUser() };
  let checking: boolean;
  try {
    const [receipt] = await resolveRequests(client, run.id, decision);
    checking = receipt?.checking === true;
  } catch (error) {
    if (!PerdureError.isInstance(error)) throw error;
    if (canDecideAgain(error)) return error.message;
    context.note(`The decision was not accepted: ${visibleMessage(error.message)}`);
    return null;
  }
  if (checking) {
    context.note('The decision counts once a worker has checked it.');
    const refused = await refusedAfterCheck(client, prompted, signal);
    if (refused !== null) return refused;
  }
  const made = [isEdit ? 'edit' : decided.as, ...(decided.actions ?? [])].join(' ');
  context.note(`Decision on request ${visible(id)}: ${visible(made)}.`);
  return null;
}

/**
 * Waits until a worker has checked a decision; returns why it was refused, or null. Throws the
 * signal's reason if that aborts before.
 */
export async function refusedAfterCheck(
  client: Client,
  { run: { id }, request }: Prompted,
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
  prompted: Prompted,
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
  prompted: Prompted,
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

function openIn(view: Projection, { run, request }: Prompted): Request | null {
  return viewedRequests(view, run.id).find(({ digest }) => digest === request.digest) ?? null;
}
