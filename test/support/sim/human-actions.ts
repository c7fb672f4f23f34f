import { askProblem, askRefusal } from '../../../src/core/run/ask.js';
import { sha256Hex } from '../../../src/core/text/json.js';
import type { FactOf } from '../../../src/core/run/events.js';
import type { Ask } from '../../../src/core/input/inbox.js';
import {
  type Decision,
  type RequestedGrant,
  OFFERED,
  type DecisionKind,
  type Request,
} from '../../../src/core/transcript/request.js';
import { openRequests } from '../../../src/core/requests/open-requests.js';
import { decisionProblem } from '../../../src/core/requests/refusal.js';
import { undoProblem } from '../../../src/core/state/undo-problem.js';
import type { RunState } from '../../../src/core/state/state.js';
import { inTurn } from '../../../src/core/state/turn.js';
import type { Dice } from './dice.js';

/** An action of a person, as the history records it, without the time. */
export type HumanAction =
  | Omit<FactOf<'update'>, 'at'>
  | Omit<FactOf<'signal'>, 'at'>
  | Omit<FactOf<'cancel-requested'>, 'at'>
  | Omit<FactOf<'completed'>, 'at'>;

interface Place {
  /** The id of the update. */
  readonly id: string;
  /** Unix time in ms. */
  readonly now: number;
}

const update = (name: string, id: string, input: unknown = {}): HumanAction => ({
  type: 'update',
  name,
  id,
  input,
});

/**
 * Returns what people do next, null for nothing. Like the validators of the workflow, it rejects
 * what the run refuses; signals have no validator. `serial` numbers the actions.
 */
export function chooseHumanAction(
  state: RunState,
  dice: Dice,
  { serial, now }: { readonly serial: number; readonly now: number },
): HumanAction | null {
  const id = `u${dice.chance(8) ? serial - 1 : serial}`;
  const place = { id, now };
  switch (dice.roll(18)) {
    case 1:
    case 2:
    case 3:
      return chooseAsk(state, dice, id);
    case 4:
      return { type: 'signal', name: 'message', input: chooseSignal(dice, serial) };
    case 5:
      return update('pause', id, { by: 'ann' });
    case 6:
      return update('resume', id);
    case 7:
      return state.open && inTurn(state) && dice.chance(2) ? update('cancelTurn', id) : null;
    case 8:
      return update('setLimits', id, dice.pick([{ steps: 9 }, { tokens: 9_000, by: 'ann' }]));
    case 9:
    case 12:
    case 13:
      return chooseDecision(state, dice, place);
    case 14:
      return chooseUndo(state, dice, place);
    case 15:
      return chooseRevocation(state, dice, place);
    case 16:
      return noticeOf(state, dice);
    case 10:
      return state.open && dice.chance(3) ? update('close', id) : null;
    case 11:
      return dice.chance(6) ? { type: 'cancel-requested' } : null;
    default:
      return null;
  }
}

/** A notice about a request was sent. */
function noticeOf(state: RunState, dice: Dice): HumanAction | null {
  const open = openRequests(state, 'run');
  const request = open[dice.roll(open.length || 1)];
  if (request === undefined || !state.config.decisions?.notify) return null;
  const task = { activity: 'notifyRequest', input: { request } };
  return { type: 'completed', task, result: null };
}

function chooseAsk(state: RunState, dice: Dice, id: string): HumanAction | null {
  const ask: Ask = {
    message: `text of ${id}`,
    mode: dice.pick(['queue', 'steer']),
    ...(dice.chance(3) && { id: `own ${id}` }),
    ...(dice.chance(4) && { pin: true }),
    ...(dice.chance(6) && { refresh: true }),
    ...(dice.chance(4) && { by: dice.pick(['bob', 'ann']) }),
    ...(dice.chance(4) && { attachments: [{ type: 'image', url: 'https://x.test/a.png' }] }),
  };
  const refusal = askProblem(ask) ?? askRefusal(state, ask, { id: ask.id ?? id, now: 0 });
  return refusal === null ? update('ask', id, ask) : null;
}

function chooseSignal(dice: Dice, serial: number): unknown {
  const message = { message: 'by signal', id: `s${serial}` };
  return dice.pick<unknown>([
    message,
    { ...message, mode: 'steer' },
    'rubbish',
    { message: 'no id' },
  ]);
}

const NAMES = [undefined, 'ann', 'bob'] as const;

/**
 * Decides requests: mostly with an offered option, otherwise in a way that the run has to refuse.
 */
function chooseDecision(state: RunState, dice: Dice, { id, now }: Place): HumanAction | null {
  const open = openRequests(state, 'run');
  const [first] = open;
  if (first === undefined) return null;
  const by = dice.pick(NAMES);
  const some = dice.chance(4) ? open : [dice.pick([first, ...open])];
  const decisions = some.map((request) => decisionAbout(request, dice, by));
  const input = decisions.length === 1 && !dice.chance(4) ? decisions[0] : decisions;
  const refused = decisionProblem(state, input, { update: id, now });
  return refused === null ? update('resolve', id, input) : null;
}

const WORDS = Object.values(OFFERED).flat();

function decisionAbout(request: Request, dice: Dice, by: string | undefined): Decision {
  const { id, digest, kind, limit, decisions } = request;
  const [first = 'deny', ...more] = decisions;
  const words: readonly [DecisionKind, ...DecisionKind[]] = dice.chance(10)
    ? ['deny', ...WORDS]
    : [first, ...more];
  const as = dice.pick(words);
  const raise = { [limit?.name ?? 'steps']: dice.pick([2, 100_000]) };
  const where = { op: 'under', path: 'x', value: 2 } as const;
  const grant = dice.pick<RequestedGrant>([
    { scope: 'same_call' },
    { scope: 'tool' },
    { scope: 'tool', where },
  ]);
  return {
    request: dice.chance(12) ? 'r1' : id,
    digest: dice.chance(12) ? sha256Hex(digest) : digest,
    as,
    ...(by !== undefined && { by }),
    ...(as === 'edit' && { arguments: { x: dice.roll(3) } }),
    ...(as === 'raise' && { arguments: raise }),
    ...(as === 'answer' && { result: kind === 'question' ? 'so' : { a: 1 } }),
    ...(as === 'happened' && dice.chance(2) && { result: { paid: 1 } }),
    ...(as === 'approve' && dice.chance(3) && { grant }),
    ...(as === 'deny' && dice.chance(2) && { note: 'not now' }),
  };
}

function chooseUndo(state: RunState, dice: Dice, { id, now }: Place): HumanAction | null {
  const kept = state.kept ?? [];
  const call = dice.chance(3) ? kept[dice.roll(kept.length || 1)]?.call.id : undefined;
  const given = call === undefined ? {} : { call };
  return undoProblem(state, call, now) === null ? update('undo', id, given) : null;
}

function chooseRevocation(
  { grants = [] }: RunState,
  dice: Dice,
  { id }: Place,
): HumanAction | null {
  const grant = grants[dice.roll(grants.length || 1)];
  return grant === undefined ? null : update('revoke', id, { grant: grant.id });
}

/** Returns an action that ends the wait of a run that nothing else advances. */
export function lastAction(state: RunState, serial: number, now: number): HumanAction {
  const id = `last ${serial}`;
  if (state.paused) return update('resume', id);
  const request = openRequests(state, 'run').find(({ checking }) => !checking);
  if (request !== undefined) {
    const input = lastWord(state, request);
    if (decisionProblem(state, input, { update: id, now }) === null) {
      return update('resolve', id, input);
    }
  }
  if (state.open && state.ending === null) return update('close', id);
  return { type: 'cancel-requested' };
}

function lastWord({ turn }: RunState, { id: request, digest, decisions }: Request): Decision {
  const as = LAST_WORDS.find((word) => decisions.includes(word)) ?? 'deny';
  // A person other than the requester, or the requester.
  const by = ['ann', 'bob'].find((name) => !turn.by?.includes(name)) ?? 'ann';
  return { request, digest, as, by };
}

const LAST_WORDS = ['deny', 'abandon', 'stop'] as const;
