import { InputError } from '../core/errors.js';
import { isObject, textField } from '../core/text/json.js';
import { show, toMs } from '../core/text/text.js';
import type { Action } from '../testing/actions.js';
import { assertFaults } from './faults.js';
import type { Script, ScriptParts } from './script.js';

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
const MOMENTS = ['request', 'call', 'step', 'waiting'];

/** Throws an `InputError` for a part of a script that would have no effect. */
export function assertScript({ on = {}, at = {}, faults = [] }: ScriptParts): void {
  for (const [moment, entries] of Object.entries(on)) {
    if (!MOMENTS.includes(moment)) throw unexpected('on', `one of ${MOMENTS.join(', ')}`, moment);
    const all: unknown = moment === 'waiting' ? { waiting: entries } : entries;
    for (const [name, entry] of Object.entries(isObject(all) ? all : {})) {
      const list: readonly unknown[] = Array.isArray(entry) ? entry : [entry];
      for (const one of list) {
        if (typeof one !== 'function') assertAction(`on.${moment}.${name}`, one);
      }
    }
  }
  for (const [delay, entry] of Object.entries(at)) {
    const ms = toMs(delay);
    if (!(ms >= 0)) throw unexpected('at', 'a time after the start such as "3 days"', delay);
    for (const one of Array.isArray(entry) ? entry : [entry]) assertAction(`at["${delay}"]`, one);
  }
  assertFaults(faults);
}

function assertAction(place: string, action: unknown): void {
  const type = isObject(action) ? textField(action, 'type') : '';
  if (!Object.hasOwn(ACTIONS, type)) {
    throw unexpected(place, 'an action such as approve(), deny(), or send("…")', action);
  }
}

function unexpected(field: string, what: string, value: unknown): InputError {
  return new InputError(`${field}: expected ${what}, got ${show(value)}`);
}

/** Returns the places at which something was to happen, and where it did not. */
export function missedIn(script: Script): readonly string[] {
  const { on, at, faults, firedFaults } = script;
  return [
    ...faults.flatMap((fault, index) =>
      firedFaults.has(fault) ? [] : [`faults[${index}]: ${show(fault)}`],
    ),
    ...Object.entries(on.call ?? {}).flatMap(([tool, entry]) =>
      leftOf(script, `call ${tool}`, entry).map((left) => `on.call.${tool}: ${left}`),
    ),
    ...Object.keys(on.step ?? {}).flatMap((step) =>
      missed(script, `step ${step}`).map((left) => `on.step[${step}]${left}`),
    ),
    ...Object.keys(at).flatMap((delay) =>
      missed(script, `at ${delay}`).map((left) => `at["${delay}"]${left}`),
    ),
  ];
}

/** Returns what the run left over of what was there for it. */
export function unusedIn(script: Script): readonly string[] {
  const { on, replies } = script;
  const requests = Object.entries(on.request ?? {}).filter(([name]) => name !== '*');
  return [
    ...replies.flatMap(({ place, given, used: count }) =>
      count() >= given ? [] : [`${place}: ${given - count()} of ${given} replies`],
    ),
    ...requests.flatMap(([name, entry]) =>
      leftOf(script, `request ${name}`, entry).map((left) => `on.request.${name}: ${left}`),
    ),
    ...leftOf(script, 'waiting', on.waiting ?? []).map((left) => `on.waiting: ${left}`),
  ];
}

const TOO_SHORT = 'the run ended before the time of its after(…)';

/** Returns what is left of an entry; a delayed action counts when it has come. */
function leftOf({ used, delayed }: Script, place: string, entry: unknown): readonly string[] {
  const given = Array.isArray(entry) ? entry.length : 1;
  const late = delayed.get(place) ?? 0;
  const count = (used.get(place) ?? 0) - late;
  if (count >= given) return [];
  const left = given === 1 ? 'never used' : `${given - count} of ${given} entries`;
  return [late === 0 ? left : `${left}; ${TOO_SHORT}`];
}

/** Returns whether an entry that has no list was missed, as the rest of a line. */
function missed({ used, delayed }: Script, place: string): readonly string[] {
  if (!used.has(place)) return [''];
  return (delayed.get(place) ?? 0) > 0 ? [`: ${TOO_SHORT}`] : [];
}
