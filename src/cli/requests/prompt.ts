import { createInterface } from 'node:readline/promises';
import type { Client } from '@temporalio/client';
import { PerdureError } from '../../core/errors.js';
import type { DecisionKind, Request } from '../../core/requests/request.js';
import { shownActions } from '../../core/plan/confirm-plan.js';
import { visible } from '../../core/text/summaries.js';
import { resolveRequests } from '../../updates/decide.js';
import type { CliContext } from '../context.js';
import { osUser } from '../input/os-user.js';
import { nextCommandFor } from '../reports/next-command.js';
import { followUp, readChoice, readPlain, wordsOf, type Decided } from './read-decision.js';
import { shownRequest, type AskingRun } from './show-request.js';

/** A request that a person at the terminal is asked to decide. */
export interface Prompted {
  readonly run: AskingRun;
  readonly request: Request;
}

/**
 * Shows a request on the terminal and asks for a decision, which is bound to the digest of what was
 * shown. Returns when the person has decided, or wants to decide later. An interrupt ends the
 * prompt.
 */
export async function promptForDecision(
  context: CliContext,
  client: Client,
  prompted: Prompted,
  { interrupt }: { readonly interrupt: AbortSignal },
): Promise<void> {
  const { run, request } = prompted;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Readline intercepts Ctrl-C, so this passes it on to the process.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    await show(context, prompted, false);
    const decided = await askFor(context, prompted, async (question) => {
      return await terminal.question(`${question} `, { signal: interrupt });
    });
    if (decided === null) {
      const see = await nextCommandFor(context, run, ['inbox', run.id, request.id]);
      context.note(`The run waits. Decide later with the commands shown by: ${see}`);
      return;
    }
    await send(context, client, prompted, decided);
  } catch (error) {
    if (!interrupt.aborted) throw error;
  } finally {
    terminal.close();
  }
}

async function show(context: CliContext, prompted: Prompted, full: boolean): Promise<void> {
  context.note('');
  for (const line of await shownRequest(context, prompted, { to: 'stderr', full, prompts: true })) {
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
    if (choice === 'full') await show(context, prompted, true);
    else if (choice === null) context.note(unclearLine(request, choices));
    else return await completed(context, { as: choice, request }, ask);
  }
}

/** Returns what to type after a line that is no answer. */
function unclearLine(request: Request, choices: string): string {
  const actions = request.kind === 'plan' ? shownActions(request.arguments ?? '') : null;
  const ids = actions?.map(({ id }) => id).join(', ');
  return `Type one of: ${choices}${ids === undefined ? '' : ` (the actions are ${ids})`}`;
}

async function completed(
  context: CliContext,
  { as, request }: { readonly as: DecisionKind; readonly request: Request },
  ask: (question: string) => Promise<string>,
): Promise<Decided> {
  const more = followUp(as, request);
  if (more === null) return { as };
  for (;;) {
    const read = more.read(await ask(more.question));
    if (typeof read !== 'string') return read;
    context.note(read);
  }
}

async function send(
  context: CliContext,
  client: Client,
  { run, request }: Prompted,
  decided: Decided,
): Promise<void> {
  const { id, digest } = request;
  try {
    await resolveRequests(client, run.id, { ...decided, request: id, digest, by: osUser() });
    context.note(`Request ${visible(id)} is decided as ${decided.as}.`);
  } catch (error) {
    // Another person may have decided, or the rules may not let this person decide.
    if (!PerdureError.isInstance(error)) throw error;
    context.note(`The decision was not accepted: ${visible(error.message)}`);
  }
}
