import { InputError } from '../core/errors.js';
import { type Json, type JsonObject, isObject, textField } from '../core/text/json.js';
import { type Duration, show, toMs } from '../core/text/text.js';
import type { Decision, Request } from '../core/transcript/request.js';
import type { Ask } from '../core/input/inbox.js';
import { assertOptionNames } from '../validation/option-names.js';
import type { Limits } from '../core/definition/definition.js';

/** A decision without the request, which is known when it is made. */
export type ScriptedDecision = Omit<Decision, 'request' | 'digest' | 'patched'> & {
  /** Default: that of the request. Another one must be refused. */
  readonly digest?: string;
};

/** A message of a script. */
export type ScriptedMessage = Omit<Ask, 'artifacts' | 'attachments' | 'sentAt'>;

/** What a person, a caller, or a machine does in a run in memory. */
export type Action =
  | { readonly type: 'decide'; readonly decision: ScriptedDecision }
  | { readonly type: 'send'; readonly message: Omit<Ask, 'sentAt'> }
  | { readonly type: 'set-limits'; readonly limits: Limits }
  /** `kill`: the worker dies. */
  | {
      readonly type: 'cancel-turn' | 'cancel' | 'close' | 'pause' | 'resume' | 'kill' | 'wait';
    }
  | { readonly type: 'after'; readonly delay: Duration; readonly action: Action };

/** Chooses an action when the request, and the id of the run that asks, are known. */
export type Reaction = Action | ((request: Request, run: string) => Action);

const ACTIONS: Readonly<Record<Action['type'], true>> = {
  send: true,
  'cancel-turn': true,
  cancel: true,
  close: true,
  pause: true,
  resume: true,
  'set-limits': true,
  kill: true,
  after: true,
  wait: true,
  decide: true,
};

/**
 * Throws an `InputError` that names the place of a script if a value there is not an action. `from`: what
 * returned the value, as in ` from its function`; default: the script itself has it.
 */
export function assertAction(place: string, action: unknown, from = ''): void {
  const type = isObject(action) ? textField(action, 'type') : '';
  if (Object.hasOwn(ACTIONS, type)) return;
  const expected = 'expected an action such as approve(), deny(), or send("…")';
  throw new InputError(`${place}: ${expected}, got ${wrongAction(action, from)}`);
}

function wrongAction(action: unknown, from: string): string {
  const maker = MAKERS.find(({ make }) => make === action);
  if (maker !== undefined) {
    const { name } = maker.make;
    return `the function ${name}${from}; did you mean ${name}(${maker.args})?`;
  }
  if (action instanceof Promise) return `a promise${from}; return the action itself`;
  return show(action) + from;
}

/** Whether a function makes an action: a script needs what it returns. */
export function isMaker(value: unknown): boolean {
  return MAKERS.some(({ make }) => make === value);
}

type ByField = Pick<Decision, 'by'>;

/** What the makers of decisions take. */
const NAMES = { by: true, note: true } as const;

function decide(as: Decision['as'], fields: Omit<ScriptedDecision, 'as'>): Action {
  return { type: 'decide', decision: { ...fields, as } };
}

/**
 * Approves a request, of a call or of a whole plan.
 *
 * @example
 * ```ts
 * import { approve } from 'perdure/testing';
 *
 * export const on = { request: { refund: approve({ by: 'ann' }) } };
 * ```
 */
export function approve(fields: ByField & Pick<Decision, 'note' | 'grant'> = {}): Action {
  assertOptionNames<typeof fields>(fields, { ...NAMES, grant: true }, 'approve');
  return decide('approve', fields);
}

/**
 * Approves some actions of a plan, by their ids, with all that they depend on.
 *
 * @example
 * ```ts
 * import { approveSome } from 'perdure/testing';
 *
 * export const on = { request: { plan: approveSome(['a1', 'a3']) } };
 * ```
 */
export function approveSome(
  actions: readonly string[],
  fields: ByField & Pick<Decision, 'note'> = {},
): Action {
  assertOptionNames<typeof fields>(fields, NAMES, 'approveSome');
  return decide('some', { ...fields, actions });
}

/**
 * Denies a request. The model reads the note.
 *
 * @example
 * ```ts
 * import { deny } from 'perdure/testing';
 *
 * export const on = { request: { refund: deny({ note: 'too much' }) } };
 * ```
 */
export function deny(fields: ByField & Pick<Decision, 'note'> = {}): Action {
  assertOptionNames<typeof fields>(fields, NAMES, 'deny');
  return decide('deny', fields);
}

/**
 * Approves a call with other arguments, which replace those of the model.
 *
 * @example
 * ```ts
 * import { edit } from 'perdure/testing';
 *
 * export const on = { request: { refund: edit({ order: 17, euros: 20 }) } };
 * ```
 */
export function edit(args: JsonObject, fields: ByField & Pick<Decision, 'note'> = {}): Action {
  assertOptionNames<typeof fields>(fields, NAMES, 'edit');
  return decide('edit', { ...fields, arguments: args });
}

/**
 * Answers a question, or gives the result of a call in place of the tool.
 *
 * @example
 * ```ts
 * import { answer } from 'perdure/testing';
 *
 * export const on = { request: { question: answer('in euros') } };
 * ```
 */
export function answer(result: Json, fields: ByField & Pick<Decision, 'note'> = {}): Action {
  assertOptionNames<typeof fields>(fields, NAMES, 'answer');
  return decide('answer', { ...fields, result });
}

/**
 * Makes any decision, such as `happened`, `retry`, `abandon`, `accept`, `raise`, or `stop`.
 *
 * @example
 * ```ts
 * import { decision } from 'perdure/testing';
 *
 * export const on = { request: { limit: decision({ as: 'raise', arguments: { steps: 10 } }) } };
 * ```
 */
export function decision(fields: ScriptedDecision): Action {
  return { type: 'decide', decision: fields };
}

/**
 * Sends a message to the run. With `mode: 'steer'`, it joins the turn under way.
 *
 * @example
 * ```ts
 * import { send } from 'perdure/testing';
 *
 * export const at = { '3 days': send('Any news?') };
 * ```
 */
export function send(message: string | ScriptedMessage): Action {
  return { type: 'send', message: typeof message === 'string' ? { message } : message };
}

/**
 * Performs an action later: after this time, counted from the moment at which it would be performed.
 * Throws an `InputError` for a time that is not one, or for something that is not an action.
 *
 * @example
 * ```ts
 * import { after, approve } from 'perdure/testing';
 *
 * export const on = { request: { refund: after('3 days', approve()) } };
 * ```
 */
export function after(delay: Duration, action: Action): Action {
  const ms = toMs(delay);
  if (!(ms >= 0 && Number.isFinite(ms))) {
    throw new InputError(
      `after: expected a delay of at least 0 such as "3 days", in weeks or a shorter unit, or milliseconds, got ${typeof delay === 'number' ? delay : show(delay)}`,
    );
  }
  assertAction('after', action);
  return { type: 'after', delay, action };
}

/**
 * Cancels the turn under way of an open run.
 *
 * @example
 * ```ts
 * import { cancelTurn } from 'perdure/testing';
 *
 * export const on = { call: { search: cancelTurn() } };
 * ```
 */
export function cancelTurn(): Action {
  return { type: 'cancel-turn' };
}

/**
 * Cancels the whole run.
 *
 * @example
 * ```ts
 * import { cancelRun } from 'perdure/testing';
 *
 * export const at = { '1 hour': cancelRun() };
 * ```
 */
export function cancelRun(): Action {
  return { type: 'cancel' };
}

/**
 * Closes an open run: it ends after the messages that it has.
 *
 * @example
 * ```ts
 * import { closeRun, send } from 'perdure/testing';
 *
 * export const on = { waiting: [send('One more thing.'), closeRun()] };
 * ```
 */
export function closeRun(): Action {
  return { type: 'close' };
}

/**
 * Pauses the run: work in flight finishes, and nothing more is started.
 *
 * @example
 * ```ts
 * import { pauseRun, resumeRun } from 'perdure/testing';
 *
 * export const script = { on: { step: { 1: pauseRun() } }, at: { '1 day': resumeRun() } };
 * ```
 */
export function pauseRun(): Action {
  return { type: 'pause' };
}

/**
 * Lets a paused or blocked run continue.
 *
 * @example
 * ```ts
 * import { resumeRun } from 'perdure/testing';
 *
 * export const at = { '1 day': resumeRun() };
 * ```
 */
export function resumeRun(): Action {
  return { type: 'resume' };
}

/**
 * Sets limits of the run, in the form of an agent's `limits`, with times in `wallMs`.
 *
 * @example
 * ```ts
 * import { setRunLimits } from 'perdure/testing';
 *
 * export const on = { step: { 3: setRunLimits({ steps: 5 }) } };
 * ```
 */
export function setRunLimits(limits: Limits): Action {
  return { type: 'set-limits', limits };
}

/**
 * Kills the worker, as `kill -9` does: what it has in memory is gone, and calls that are running have no
 * result. Another worker replays the run from its history and continues.
 *
 * @example
 * ```ts
 * import { kill } from 'perdure/testing';
 *
 * export const on = { call: { refund: kill() } };
 * ```
 */
export function kill(): Action {
  return { type: 'kill' };
}

/**
 * Leaves a request open, so that it expires.
 *
 * @example
 * ```ts
 * import { noDecision } from 'perdure/testing';
 *
 * export const on = { request: { refund: noDecision() } };
 * ```
 */
export function noDecision(): Action {
  return { type: 'wait' };
}

/** The functions that make actions, and their arguments as a text shows them. */
const MAKERS: readonly {
  readonly make: (...args: never) => Action;
  readonly args: string;
}[] = [
  ...[approve, deny, cancelTurn, cancelRun, closeRun, pauseRun, resumeRun, kill, noDecision].map(
    (make) => ({ make, args: '' }),
  ),
  { make: approveSome, args: '["a1"]' },
  { make: edit, args: '{ … }' },
  { make: answer, args: '"…"' },
  { make: decision, args: '{ as: "…" }' },
  { make: send, args: '"…"' },
  { make: after, args: '"3 days", …' },
  { make: setRunLimits, args: '{ … }' },
];
