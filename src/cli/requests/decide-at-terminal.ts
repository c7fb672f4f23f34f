import { createInterface } from 'node:readline/promises';
import type { Client } from '@temporalio/client';
import { PerdureError } from '../../core/errors.js';
import { shownActions } from '../../core/plan/confirm-plan.js';
import { visible } from '../../core/state/summaries.js';
import type { Request } from '../../core/transcript/request.js';
import { followSegments } from '../../history/follow-history.js';
import type { Projection } from '../../history/projection.js';
import { readRun } from '../../history/read-run.js';
import { resolveRequests } from '../../updates/decide.js';
import type { CliContext } from '../context.js';
import { osUser } from '../input/option-parsers.js';
import { nextCommandFor } from '../reports/next-command.js';
import { type Decided, completed, readChoice, readPlain, wordsOf } from './prompt.js';
import { type AskingRun, ownStanding, shownRequest, viewedRequests } from './show-request.js';

/** A request that a person at the terminal is asked to decide. */
interface Prompted {
  readonly run: AskingRun;
  readonly request: Request;
}

/**
 * Shows a request on the terminal and asks for a decision, which is bound to the digest of what was
 * shown. Returns when the person has decided, wants to decide later, or may not decide. An interrupt
 * ends the prompt.
 */
export async function promptForDecision(
  context: CliContext,
  client: Client,
  prompted: Prompted,
  { interrupt }: { readonly interrupt: AbortSignal },
): Promise<void> {
  const { run, request } = prompted;
  if (ownStanding(run, request).name !== 'own') {
    await show(context, prompted, { full: false, prompts: false });
    context.note('The run waits for a person who may decide.');
    return;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Readline intercepts Ctrl-C, so this passes it on to the process.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    await show(context, prompted, { full: false, prompts: true });
    for (;;) {
      const decided = await askFor(context, prompted, async (question) => {
        return await terminal.question(`${question} `, { signal: interrupt });
      });
      if (decided === null) {
        const see = await nextCommandFor(context, run, ['inbox', run.id, request.id]);
        context.note(`The run waits. Decide later with the commands shown by: ${see}`);
        return;
      }
      const refused = await send(context, client, prompted, { decided, interrupt });
      if (refused === null) return;
      context.note(`The decision was not accepted: ${visible(refused)}`);
    }
  } catch (error) {
    if (!interrupt.aborted) throw error;
  } finally {
    terminal.close();
  }
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
async function askFor(
  context: CliContext,
  prompted: Prompted,
  ask: (question: string) => Promise<string>,
): Promise<Decided | null> {
  const { request } = prompted;
  const choices = wordsOf(request).join(' / ');
  for (;;) {
    const line = await ask(`${choices}?`);
    const plain = readPlain(line, request);
    if (plain !== null) return plain;
    const choice = readChoice(line, request);
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

/** Sends a decision. Returns why a worker has refused it, so that it can be made again; else null. */
async function send(
  context: CliContext,
  client: Client,
  prompted: Prompted,
  { decided, interrupt }: { readonly decided: Decided; readonly interrupt: AbortSignal },
): Promise<string | null> {
  const { run, request } = prompted;
  const { id, digest, kind } = request;
  const isEdit = kind === 'plan' && decided.as === 'answer';
  const made = { ...decided, request: id, digest, by: osUser() };
  const receipt = await resolveRequests(client, run.id, made).then(
    ([first]) => first,
    (error: unknown) => {
      // Another person may have decided, or the rules may not let this person decide.
      if (!PerdureError.isInstance(error)) throw error;
      context.note(`The decision was not accepted: ${visible(error.message)}`);
      return null;
    },
  );
  if (receipt === null) return null;
  if (receipt?.checking === true) {
    context.note('The decision counts once a worker has checked it.');
    const refused = await refusedAfterCheck(client, prompted, interrupt);
    if (refused !== null) return refused;
  }
  context.note(`Request ${visible(id)} is decided as ${isEdit ? 'edit' : decided.as}.`);
  return null;
}

/** Waits until a worker has checked a decision; returns why it was refused, or null. */
async function refusedAfterCheck(
  client: Client,
  { run: { id }, request: { digest } }: Prompted,
  signal: AbortSignal,
): Promise<string | null> {
  // Read after the decision was accepted, so it has the decision.
  const { runId, view } = await readRun(client, id);
  const answerIn = (seen: Projection): string | null | undefined => {
    const open = viewedRequests(seen, id).find((one) => one.digest === digest);
    return open?.checking === true ? undefined : (open?.refused ?? null);
  };
  const known = answerIn(view);
  if (known !== undefined) return known;
  for await (const next of followSegments(client, { id, runId, signal })) {
    if (next.runId === runId && next.view.lastEvent < view.lastEvent) continue;
    const answer = answerIn(next.view);
    if (answer !== undefined) return answer;
  }
  // The interrupt ends the loop, and then nothing is known of the check.
  signal.throwIfAborted();
  return null;
}
