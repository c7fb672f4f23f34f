import { checkAttachments } from './input/attachments.js';
import { checkBy } from './decisions.js';
import type { RunEvent } from './events.js';
import {
  carriedBytes,
  jsonLength,
  inboxProblem,
  assignTurn,
  findTurnOfMessage,
  type Ask,
  type AskReceipt,
} from './inbox.js';
import { checkFlag, checkText, show } from './input/input.js';
import { isObject } from './json.js';
import { inTurn, type RunState } from './state.js';

const FIELDS = ['message', 'id', 'mode', 'pin', 'refresh', 'attachments', 'by'];
const MAX_ID_CHARACTERS = 200;
/** Nothing larger enters the history. */
const MAX_MESSAGE_BYTES = 256 * 1024;
const MAX_PINNED_BYTES = 16 * 1024;
/** Pinned messages are carried from segment to segment. */
const MAX_PINNED_IN_ALL = 128 * 1024;

/** @returns why what came in is no message that any run could take, or null */
export function askProblem(value: unknown): string | null {
  if (!isObject(value)) return `ask: ${show(value)} is no object; give {"message": "text"}`;
  const unknown = Object.keys(value).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) {
    return `ask.${unknown}: no such field; there are ${FIELDS.join(', ')}`;
  }
  return (
    checkText(value['message']) ??
    checkId(value['id']) ??
    checkMode(value['mode']) ??
    checkFlag('pin', value['pin']) ??
    checkFlag('refresh', value['refresh']) ??
    checkBy(value['by']) ??
    checkAttachments(value['attachments']) ??
    checkSize(value)
  );
}

/** @returns why this run does not take a message now, or null. A message that is here already is taken. */
export function askRefusal(
  state: RunState,
  ask: Pick<Ask, 'message' | 'mode' | 'refresh' | 'pin' | 'attachments'>,
  id: string,
): string | null {
  if (findTurnOfMessage(state.inbox, id) !== null) return null;
  const steer = ask.mode === 'steer';
  if (state.ending !== null) return `the run takes no more messages: it is ${state.ending}`;
  if (!state.open && (state.turn.outcome !== null || state.turn.closing !== null)) {
    return 'the run is ending: its turn is over';
  }
  if (!state.open && !steer) {
    return 'this run ends with its turn; send with mode "steer" to join it, or start one with "open": true';
  }
  if (steer && ask.refresh === true && inTurn(state)) {
    return 'refresh: a turn under way keeps its agent; send it without mode "steer"';
  }
  if (ask.pin === true && pinnedBytes(state) > MAX_PINNED_IN_ALL) {
    return `pin: ${pinnedBytes(state)} bytes are pinned already, and stay for good; send it without`;
  }
  return inboxProblem(state.inbox, {
    text: ask.message,
    ...(ask.attachments && { attachments: ask.attachments }),
  });
}

/** What becomes of a message that is taken: its receipt, and the event where it is new. */
export function acceptMessage(
  state: RunState,
  ask: Ask,
  id: string,
): { receipt: AskReceipt; event: RunEvent | null } {
  const known = findTurnOfMessage(state.inbox, id);
  if (known !== null) return { receipt: { turn: known, duplicate: true }, event: null };
  // A closing call is a turn's last word: what comes during it begins the next one.
  const current = inTurn(state) && state.turn.closing === null ? state.turn.number : 0;
  const turn = assignTurn(state.inbox, current, ask.mode ?? 'queue');
  const message = {
    id,
    text: ask.message,
    turn,
    ...(ask.attachments && { attachments: ask.attachments }),
    ...(ask.pin && { pinned: true as const }),
    ...(ask.refresh && { refresh: true as const }),
    ...(ask.by !== undefined && { by: ask.by }),
  };
  return { receipt: { turn }, event: { type: 'message-received', message } };
}

/**
 * What becomes of a message that came by signal: `message-received` or `message-refused`, null for one
 * that is here already. A signal may hold anything, so this never throws. `at`: Unix time in ms.
 */
export function acceptSignal(state: RunState, value: unknown, at: number): RunEvent | null {
  const id = idIn(value);
  const refused = (reason: string): RunEvent => ({
    type: 'message-refused',
    refused: { id, reason, at },
  });
  try {
    const problem = askProblem(value);
    if (problem !== null) return refused(problem);
    if (id === null) return refused('id: missing; a message by signal needs an id of its own');
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked field by field above
    const ask = value as Ask;
    const refusal = askRefusal(state, ask, id);
    return refusal === null ? acceptMessage(state, ask, id).event : refused(refusal);
  } catch {
    return refused('the message cannot be read');
  }
}

function idIn(value: unknown): string | null {
  if (!isObject(value)) return null;
  const { id } = value;
  return typeof id === 'string' && checkId(id) === null ? id : null;
}

function pinnedBytes({ transcript, inbox }: RunState): number {
  const said = [...transcript.keptAside, ...transcript.messages];
  const pinned = said.filter((message) => message.role === 'user' && message.pinned);
  const coming = inbox.waiting.filter((message) => message.pinned);
  return [...pinned, ...coming].reduce((sum, message) => sum + carriedBytes(message), 0);
}

function checkId(value: unknown): string | null {
  if (value === undefined) return null;
  const fits = typeof value === 'string' && value !== '' && value.length <= MAX_ID_CHARACTERS;
  return fits
    ? null
    : `id: ${show(value)} is no id; give a text of 1 to ${MAX_ID_CHARACTERS} characters`;
}

function checkMode(value: unknown): string | null {
  if (value === undefined || value === 'queue' || value === 'steer') return null;
  return `mode: ${show(value)} is neither "queue" nor "steer"`;
}

function checkSize(ask: Record<string, unknown>): string | null {
  const bytes = jsonLength(String(ask['message']));
  const most = ask['pin'] === true ? MAX_PINNED_BYTES : MAX_MESSAGE_BYTES;
  if (bytes <= most) return null;
  const which = ask['pin'] === true ? 'a pinned message' : 'a message';
  return `message: ${bytes} bytes are more than ${which} may have (${most}); put the text into a file and name the file`;
}
