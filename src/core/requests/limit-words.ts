import {
  LIMITS,
  LIMIT_NAMES,
  type LimitName,
  type LimitSet,
  type Limits,
} from '../definition/definition.js';
import { formatDuration } from '../text/text.js';
import type { LimitReached } from '../transcript/request.js';

/** Returns the word for a limit on the command line: `cost-usd`, and `wall` for `wallMs`. */
export function limitWord(name: LimitName): string {
  if (name === 'wallMs') return 'wall';
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Returns the word for the limit that a request is about: `steps`, or `run.steps`. */
export function limitWords({ name, scope }: Pick<LimitReached, 'name' | 'scope'>): string {
  return `${scope === 'run' ? 'run.' : ''}${limitWord(name)}`;
}

/** Returns the name of a limit in options: `costUsd`, and `wall` for `wallMs`. */
export function limitOption(name: LimitName): string {
  return LIMITS[name] === 'time' ? limitWord(name) : name;
}

/** Significant digits of an amount of money; what follows them is an error of binary fractions. */
const DIGITS = 12;

/** Returns an amount of a limit without the error of a sum of money: 0.9, and not 0.8999999999999999. */
export function roundedAmount(name: LimitName, amount: number): number {
  return LIMITS[name] === 'money' ? Number(amount.toPrecision(DIGITS)) : amount;
}

/** Returns a limit, or an amount of it, as text: `20`, `0.5`, `10 min`, or `none`. */
export function limitAmount(name: LimitName, amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return 'none';
  if (LIMITS[name] === 'time') return formatDuration(amount, { as: 'exact' });
  return String(roundedAmount(name, amount));
}

/** Returns limits as on the command line, without quotes: `steps=20 run.cost-usd=0.5`. */
export function limitsText({ run = {}, ...turn }: Limits): string {
  return [...limitTexts(turn, ''), ...limitTexts(run, 'run.')].join(' ');
}

function limitTexts(limits: LimitSet, scope: '' | 'run.'): readonly string[] {
  return LIMIT_NAMES.flatMap((name) => {
    const limit = limits[name];
    return limit === undefined ? [] : [`${scope}${limitWord(name)}=${limitAmount(name, limit)}`];
  });
}
