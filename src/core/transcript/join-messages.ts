import { attachArtifacts } from '../artifacts/artifacts.js';
import { appendMessage, dropRepairBranch, endTurn, withTurn } from '../change.js';
import { beginPass } from '../graph/walk.js';
import { isAnonymous, namesIn, takeMessages, type Incoming } from '../inbox.js';
import type { SuppliedMessage } from '../input/supplied-messages.js';
import { joinContexts } from '../input/turn-context.js';
import { joinSettings } from '../input/turn-settings.js';
import { failed } from '../make-outcome.js';
import { promptText, misfitProblem } from '../named-prompts/named-prompt.js';
import type { RunState } from '../state.js';
import { fitsPinned } from './pinned.js';
import { freshTurn } from '../turn.js';

/** Begins the turn of the oldest waiting message. `at`: Unix time in ms. */
export function beginTurn(state: RunState, at: number): RunState {
  const number = state.inbox.waiting[0]?.turn ?? state.turn.number + 1;
  const { taken } = takeMessages(state.inbox, number);
  const fresh = { ...state, turn: freshTurn(number, state.config.price, at) };
  const begun = joinMessages(fresh, at, false);
  const problem = textMisfit(state, taken);
  if (problem !== null) return endTurn(begun, failed(begun, { reason: 'input', message: problem }));
  return beginPass(begun, { taken, at });
}

/**
 * Returns why a text does not fit, or null. A message may arrive before the agent is loaded, or
 * name a prompt that a newer definition lacks.
 */
function textMisfit({ config }: RunState, taken: readonly Incoming[]): string | null {
  const problems = taken.map((message) => misfitProblem(config.definition, message));
  return problems.find((problem) => problem !== null) ?? null;
}

/**
 * Moves the messages for the turn under way into the transcript, in the order of their arrival.
 * `isBegun`: the turn has had messages before.
 */
export function joinMessages(state: RunState, at: number, isBegun = true): RunState {
  const { taken, inbox } = takeMessages(state.inbox, state.turn.number);
  if (taken.length === 0) return state;
  const { notes = [], ...unnoted } = withRequesters(dropRepairBranch(state), taken, isBegun);
  const noted = notes.reduce<RunState>(
    (next, text) => appendMessage(next, at, { role: 'user', text, origin: 'perdure' }),
    unnoted,
  );
  return taken.reduce<RunState>(
    (current, message) => {
      const { id, pinned, attachments, artifacts, by, input, messages = [] } = message;
      const next = artifacts === undefined ? current : attachArtifacts(current, artifacts, at);
      const before = messages
        .slice(0, -1)
        .reduce<RunState>((so, one) => appendSupplied(so, at, one), next);
      const text = messages.at(-1)?.text ?? textOf(state, message);
      // A graph's input without text adds no message for the model.
      if (text === '' && input !== undefined) return next;
      return appendMessage(before, at, {
        role: 'user',
        text,
        ...(attachments && { attachments }),
        id,
        ...(pinned && fitsPinned(before, message) && { pinned }),
        ...(by !== undefined && { by }),
      });
    },
    withNewest({ ...noted, inbox }, taken),
  );
}

/**
 * Appends one of several messages sent as one. Only the last one has the id and the attachments.
 */
function appendSupplied(state: RunState, at: number, { role, text }: SuppliedMessage): RunState {
  return appendMessage(
    state,
    at,
    role === 'user' ? { role, text } : { role, text, supplied: true },
  );
}

/**
 * Returns the text of a message. If its prompt cannot be filled in, a placeholder line takes its
 * place: the turn fails, and the conversation continues.
 */
function textOf({ config }: RunState, { text, prompt, args }: Incoming): string {
  if (prompt === undefined) return text;
  const call = { prompt, ...(args && { args }) };
  if (misfitProblem(config.definition, call) !== null) return '[a message that could not be read]';
  return promptText(config.definition, call);
}

/** Sets the turn's prompt to the newest one, and joins contexts and settings of all messages. */
function withNewest(state: RunState, taken: readonly Incoming[]): RunState {
  const prompt = taken.findLast((message) => message.prompt !== undefined)?.prompt;
  const context = joinContexts([state.turn.context, ...taken.map((message) => message.context)]);
  const settings = joinSettings([state.turn.settings, ...taken.map((one) => one.settings)]);
  return withTurn(state, {
    ...(prompt !== undefined && { prompt }),
    ...(context !== undefined && { context }),
    ...(settings !== undefined && { settings }),
  });
}

/** Records the requesters of this turn, because rules may require other people to decide. */
function withRequesters(state: RunState, taken: readonly Incoming[], isBegun: boolean): RunState {
  const { by: before } = state.turn;
  const by = [...new Set([...(before ?? []), ...namesIn(taken)])];
  // Without any name, the requesters are unknown anyway.
  if (by.length === 0) return state;
  const anonymous = (isBegun && before === undefined) || taken.some(isAnonymous);
  return withTurn(state, { by, ...(anonymous && { anonymous: true }) });
}
