import { inputProblem } from '../graph/walk.js';
import {
  type Ask,
  type AskReceipt,
  type Incoming,
  assignTurn,
  byteLength,
  carriedBytes,
  contentDigest,
  findTurnOfMessage,
  inboxProblem,
  jsonLength,
  otherMessageProblem,
  repeatedReceipt,
} from '../input/inbox.js';
import {
  checkBy,
  actorOf,
  checkDoor,
  checkArtifacts,
  checkAttachments,
  joinedContextProblem,
  messageContextProblem,
  turnContextOf,
} from '../input/turn-context.js';
import { type FieldChecks, checkFields, checkFlag, checkText, show } from '../input/input.js';
import { misfitProblem, promptMessageProblem, promptText } from '../input/named-prompt.js';
import { turnSettingsProblem } from '../input/turn-settings.js';
import { type MessageAnswer, messageAnswer } from '../requests/answer-by-message.js';
import { isLoaded } from '../rules/limits.js';
import type { RunState } from '../state/state.js';
import { closingReason, getOutcome, inTurn } from '../state/turn.js';
import { checkInput, isObject, textField } from '../text/json.js';
import { suppliedProblem } from '../transcript/messages.js';
import type { RefusalReason } from '../transcript/request.js';
import type { RunEvent } from './events.js';

/** The largest message that can be pinned, in bytes. */
const MAX_PINNED_BYTES = 16 * 1024;
/** Limit on all pinned messages together, because they are passed from segment to segment. */
const MAX_PINNED_TOTAL_BYTES = 128 * 1024;

/** Returns the size in bytes of all pinned messages, including waiting ones. */
function pinnedBytes(state: RunState): number {
  const waiting = state.inbox.waiting.filter((message) => message.pinned);
  return (
    pinnedInTranscript(state) +
    waiting.reduce((sum, message) => sum + messageBytes(state, message), 0)
  );
}

/**
 * Whether a message may stay pinned. A prompt that arrived before its agent was loaded may be too
 * long.
 */
export function fitsPinned(state: RunState, message: Incoming): boolean {
  if (message.prompt === undefined) return true;
  const bytes = messageBytes(state, message);
  return bytes <= MAX_PINNED_BYTES && pinnedInTranscript(state) + bytes <= MAX_PINNED_TOTAL_BYTES;
}

function pinnedInTranscript({ transcript }: RunState): number {
  return [...transcript.keptAside, ...transcript.messages]
    .filter((message) => message.role === 'user' && message.pinned)
    .reduce((sum, message) => sum + carriedBytes(message), 0);
}

/**
 * Returns the size in bytes of a message. For a prompt, that is its filled-in text, not the
 * arguments.
 */
function messageBytes({ config }: RunState, message: Incoming): number {
  const { prompt, args } = message;
  if (prompt === undefined) return carriedBytes(message);
  return jsonLength(promptText(config.definition, { prompt, ...(args && { args }) }));
}

const MAX_ID_CHARACTERS = 200;
/** The maximum size of a message, because the history records it. */
const MAX_MESSAGE_BYTES = 256 * 1024;

/** The check of each field of a message; a field without one does not compile. */
const CHECKS: FieldChecks<Ask> = {
  message: (_, all) => checkMessageOrInput(all),
  id: checkId,
  mode: checkMode,
  pin: (value) => checkFlag('pin', value),
  refresh: (value) => checkFlag('refresh', value),
  attachments: checkAttachments,
  by: checkBy,
  door: checkDoor,
  answers: checkAnswers,
  sentAt: checkSentAt,
  input: covered,
  prompt: covered,
  args: covered,
  messages: covered,
  artifacts: checkArtifacts,
  context: (_, all) => messageContextProblem(all),
  contextMode: covered,
  settings: turnSettingsProblem,
};

/** A field that the check of another one covers. */
function covered(): null {
  return null;
}

/** The fields of a message. */
export const ASK_FIELDS: readonly string[] = Object.keys(CHECKS);

/** Returns what is wrong with the argument of `ask`, regardless of the run's state, or null. */
export function askProblem(value: unknown): string | null {
  if (!isObject(value))
    return `ask: expected an object, got ${show(value)}; give {"message": "text"}`;
  return checkFields('ask', value, CHECKS) ?? checkSize(value);
}

/**
 * Why a run refuses a message or a control update. `reason`: only for a decision, a message that is close to
 * one, and at the end.
 */
export interface Refusal {
  readonly message: string;
  readonly reason?: RefusalReason;
}

interface Received {
  readonly id: string;
  /** Unix time in ms. */
  readonly now: number;
  /** See `keepsEarlierMeaning`; default: false. */
  readonly earlier?: boolean;
  /** The history has the message: see `messageAnswer`. */
  readonly recorded?: true;
}

/** Returns why this run refuses a message now, or null. A message received before is accepted. */
export function askRefusal(
  state: RunState,
  ask: Omit<Ask, 'id'>,
  { id, earlier = false, ...received }: Received,
): Refusal | null {
  if (findTurnOfMessage(state.inbox, id) !== null) return null;
  const never = neverRefusal(state, ask);
  if (never !== null) return never;
  const answer = messageAnswer(state, ask, { ...received, earlier });
  if (answer.type === 'refused') return answer.refused;
  const message = nowProblem(state, ask, answer);
  return message === null ? null : { message };
}

/** Returns why the run refuses a message whatever it says about requests, or null. */
function neverRefusal(state: RunState, ask: Omit<Ask, 'id'>): Refusal | null {
  const misfit = inputMisfit(state, ask) ?? textMisfit(state, ask);
  if (misfit !== null) return { message: misfit };
  if (state.ending !== null) {
    const message = `the run accepts no more messages: it is ${state.ending}`;
    return { message, reason: 'run_ended' };
  }
  if (!state.open && (getOutcome(state) !== null || closingReason(state) !== null)) {
    return { message: 'the run is ending: its turn is over', reason: 'run_ended' };
  }
  return null;
}

/** Returns why the run refuses a message in its current state, or null. */
function nowProblem(state: RunState, ask: Omit<Ask, 'id'>, answer: MessageAnswer): string | null {
  const steer = ask.mode === 'steer';
  const decides = answer.type === 'decides';
  if (!state.open && !steer && !decides) {
    return 'this run ends with its turn; send with mode "steer" to join it, or start one with "open": true';
  }
  const turn = turnFor(state, ask, answer);
  const joining = joiningProblem(state, ask, { decides, turn });
  if (joining !== null) return joining;
  const overfull = contextRefusal(state, ask, turn);
  if (overfull !== null) return overfull;
  if (ask.pin === true && pinnedBytes(state) > MAX_PINNED_TOTAL_BYTES) {
    return `pin: expected at most ${MAX_PINNED_TOTAL_BYTES} pinned bytes, got ${pinnedBytes(state)}; send the message without pin`;
  }
  return inboxProblem(state.inbox, {
    text: ask.message ?? '',
    ...(ask.attachments && { attachments: ask.attachments }),
    ...(ask.input && { input: ask.input }),
    ...(ask.args && { args: ask.args }),
    ...(ask.messages && { messages: ask.messages }),
    ...(ask.artifacts && { artifacts: ask.artifacts }),
    ...turnContextOf(ask),
  });
}

/** Returns what a message for the turn under way cannot have, because only a turn's start reads it. */
function joiningProblem(
  state: RunState,
  ask: Omit<Ask, 'id'>,
  { decides, turn }: { readonly decides: boolean; readonly turn: number },
): string | null {
  const { input, refresh, mode } = ask;
  const isLate = decides || (mode === 'steer' && inTurn(state));
  if (!isLate) return null;
  const instead = decides
    ? 'answer first, and send it in a message of its own'
    : 'send it without mode "steer"';
  if (refresh === true) return `refresh: a turn under way keeps its agent; ${instead}`;
  if (input === undefined || turn !== state.turn.number) return null;
  return `input: a graph reads it when a turn begins, and the message would join the turn under way; ${instead}`;
}

/** Returns the turn to which a message would belong. */
function turnFor(state: RunState, ask: Omit<Ask, 'id'>, answer: MessageAnswer): number {
  // A closing turn accepts no messages; they begin the next turn.
  const current = inTurn(state) && closingReason(state) === null ? state.turn.number : 0;
  // An answer to the turn's question belongs to that turn.
  const mode = answer.type === 'decides' ? 'steer' : ask.mode;
  return assignTurn(state.inbox, current, mode ?? 'queue');
}

/** Returns why a message's context does not fit with the existing contexts of its turn, or null. */
function contextRefusal(state: RunState, ask: Omit<Ask, 'id'>, turn: number): string | null {
  if (ask.context === undefined) return null;
  const under = turn === state.turn.number ? [state.turn.context] : [];
  const waiting = state.inbox.waiting.filter((message) => message.turn === turn);
  const contexts = waiting.map(({ context }) => context);
  return joinedContextProblem([...under, ...contexts, turnContextOf(ask).context]);
}

/**
 * Accepts a message. Returns its receipt and the event, which is null for a duplicate, and what the
 * message is to the run's requests. `earlier`: see `keepsEarlierMeaning`.
 */
export function acceptMessage(
  state: RunState,
  ask: Ask,
  id: string,
  earlier = false,
): { receipt: AskReceipt; event: RunEvent | null; answer: MessageAnswer } {
  const repeated = repeatedReceipt(state.inbox, id);
  if (repeated !== null) return { receipt: repeated, event: null, answer: { type: 'message' } };
  const answer = messageAnswer(state, ask, { now: null, earlier, recorded: true });
  const turn = turnFor(state, ask, answer);
  const message = {
    id,
    text: ask.message ?? '',
    turn,
    ...(ask.attachments && { attachments: ask.attachments }),
    ...(ask.input && { input: ask.input }),
    ...(ask.messages && { messages: ask.messages }),
    ...(ask.prompt !== undefined && { prompt: ask.prompt }),
    ...(ask.args && { args: ask.args }),
    ...(ask.artifacts && { artifacts: ask.artifacts }),
    ...turnContextOf(ask),
    ...(ask.settings && { settings: ask.settings }),
    ...(ask.pin && { pinned: true as const }),
    ...(ask.refresh && { refresh: true as const }),
    ...actorOf(ask),
  };
  const receipt = { turn, digest: contentDigest(ask) };
  return { receipt, event: { type: 'message-received', message }, answer };
}

/**
 * Accepts or refuses a message that came by signal. Returns `message-received`, `message-refused`,
 * or null for a message received before, and what the message is to the run's requests. Never
 * throws, because a signal may hold anything. `at`: Unix time in ms. `earlier`: see
 * `keepsEarlierMeaning`.
 */
export function acceptSignal(
  state: RunState,
  value: unknown,
  at: number,
  earlier = false,
): { event: RunEvent | null; answer: MessageAnswer } {
  const id = idIn(value);
  const refused = (reason: string): ReturnType<typeof acceptSignal> => ({
    event: { type: 'message-refused', refused: { id, reason, at } },
    answer: { type: 'message' },
  });
  try {
    const problem = askProblem(value);
    if (problem !== null) return refused(problem);
    if (id === null)
      return refused('id: expected an id, which a message by signal needs, got none');
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked field by field above
    const ask = value as Ask;
    const repeated = repeatedReceipt(state.inbox, id);
    const other = otherMessageProblem(ask, repeated?.digest);
    if (other !== null) return refused(other);
    const refusal = askRefusal(state, ask, { id, now: at, earlier, recorded: true });
    return refusal === null ? acceptMessage(state, ask, id, earlier) : refused(refusal.message);
  } catch {
    return refused('message: it cannot be read');
  }
}

function idIn(value: unknown): string | null {
  if (!isObject(value)) return null;
  const { id } = value;
  return typeof id === 'string' && checkId(id) === null ? id : null;
}

/** Checks the message; one with a prompt, or with an input for a graph, needs no text. */
function checkMessageOrInput(ask: Record<string, unknown>): string | null {
  const { message, input, prompt, args, messages } = ask;
  if (prompt !== undefined) return promptMessageProblem(ask, args) ?? suppliedProblem(ask);
  if (args !== undefined) return 'args: expected a prompt that takes them; give "prompt" too';
  if (messages !== undefined) return suppliedProblem(ask);
  if (input === undefined) return checkText(message);
  const problem = checkInput(input);
  return problem ?? (message === '' || message === undefined ? null : checkText(message));
}

/** Returns why the text does not fit the agent, or null. It is checked later if none is loaded. */
function textMisfit(state: RunState, ask: Ask): string | null {
  if (!isLoaded(state)) return null;
  const { definition } = state.config;
  const problem = misfitProblem(definition, ask);
  const { prompt, args, pin } = ask;
  if (problem !== null || prompt === undefined || pin !== true) return problem;
  const bytes = jsonLength(promptText(definition, { prompt, ...(args && { args }) }));
  if (bytes <= MAX_PINNED_BYTES) return null;
  return `pin: expected a prompt of at most ${MAX_PINNED_BYTES} bytes, got ${bytes}; send it without pin`;
}

/** Returns why the run cannot accept an input, or null. Only a graph accepts one. */
function inputMisfit(state: RunState, { input }: Pick<Ask, 'input'>): string | null {
  const { graph, name } = state.config.definition;
  // An input that arrives before the graph is loaded is checked when its turn begins.
  if (input === undefined || !isLoaded(state)) return null;
  if (graph === undefined) {
    return `input: expected none, got one; "${name}" is an agent, not a graph`;
  }
  return inputProblem({ name, graph }, input);
}

function checkId(value: unknown): string | null {
  if (value === undefined) return null;
  const fits = typeof value === 'string' && value !== '' && value.length <= MAX_ID_CHARACTERS;
  return fits
    ? null
    : `id: expected a string of 1–${MAX_ID_CHARACTERS} characters, got ${show(value)}`;
}

function checkAnswers(value: unknown): string | null {
  if (value === undefined || typeof value === 'boolean') return null;
  if (isObject(value)) {
    const unknown = Object.keys(value).find((key) => key !== 'request' && key !== 'digest');
    if (unknown === undefined && textField(value, 'request') && textField(value, 'digest')) {
      return null;
    }
  }
  return `answers: expected false, true, or {"request": "r1", "digest": "…"}, got ${show(value)}`;
}

function checkSentAt(value: unknown): string | null {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0)) return null;
  return `sentAt: expected a Unix time in ms, got ${show(value)}`;
}

function checkMode(value: unknown): string | null {
  if (value === undefined || value === 'queue' || value === 'steer') return null;
  return `mode: expected "queue" or "steer", got ${show(value)}`;
}

function checkSize(ask: Record<string, unknown>): string | null {
  const bytes =
    jsonLength(textField(ask, 'message')) + argsBytes(ask['args']) + argsBytes(ask['messages']);
  const isPinned = ask['pin'] === true;
  const max = isPinned ? MAX_PINNED_BYTES : MAX_MESSAGE_BYTES;
  if (bytes <= max) return null;
  const which = isPinned ? ' of a pinned message' : '';
  return `message: expected at most ${max} bytes${which}, got ${bytes}; put the text into a file and name the file`;
}

function argsBytes(args: unknown): number {
  return args === undefined ? 0 : byteLength(JSON.stringify(args));
}
