import { LIMITS, LIMIT_NAMES, type LimitName, type LimitSet } from '../definition/definition.js';
import { isObject } from '../text/json.js';
import { MAX_DURABLE_MS, readDuration, show, toMs } from '../text/text.js';
import { nearHint } from './named-prompt.js';

/** Returns what is wrong with a set of limits, or null. `path`: the field that holds the set. */
export function checkLimits(value: unknown, path: string): string | null {
  return checkRecordedLimits(value, path) ?? (isObject(value) ? tooHigh(value, path) : null);
}

/** Returns which limit is above the maximum, or null. `limits`: a checked set. */
function tooHigh(limits: Record<string, unknown>, path: string): string | null {
  for (const [name, limit] of Object.entries(limits)) {
    const at = `${path}.${name}`;
    const found = isObject(limit) ? tooHigh(limit, at) : null;
    if (found !== null) return found;
    const most = isLimitName(name) ? limitMaximum(name) : null;
    if (most !== null && typeof limit === 'number' && limit > most.amount) {
      const none = path.startsWith('limits') ? ', or null for none' : '';
      return `${at}: expected at most ${most.text}${none}, got ${limit}`;
    }
  }
  return null;
}

/** Returns the highest limit, and that as text; null for one of money, which has no maximum. */
export function limitMaximum(
  name: LimitName,
): { readonly amount: number; readonly text: string } | null {
  switch (LIMITS[name]) {
    case 'money':
      return null;
    case 'time':
      return { amount: MAX_DURABLE_MS, text: '36500 days' };
    default:
      return { amount: Number.MAX_SAFE_INTEGER, text: String(Number.MAX_SAFE_INTEGER) };
  }
}

/** Like `checkLimits`, without the maximum: a run that was started with a higher limit keeps it. */
export function checkRecordedLimits(value: unknown, path: string): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) {
    return `${path}: expected an object, got ${show(value)}; give for example {"steps": 10}`;
  }
  for (const [name, limit] of Object.entries(value)) {
    const at = `${path}.${name}`;
    if (name === 'run' && path === 'limits') {
      const inner = checkRecordedLimits(limit, at);
      if (inner !== null) return inner;
    } else if (!isLimitName(name)) {
      if (name === 'wall') return wallProblem(value, at);
      const names = LIMIT_NAMES.map((each) => (each === 'wallMs' ? 'wall' : each));
      return `${at}: expected one of ${names.join(', ')}, or limits.run for the whole run, got ${show(name)}${nearHint(name, names)}; correct the name`;
    } else if (!isLimit(name, limit)) {
      if (name === 'wallMs' && typeof limit === 'string') {
        return `${at}: expected a positive number of ms, got ${show(limit)}; for words, write wall: ${show(limit)}`;
      }
      const kind = LIMITS[name] === 'money' ? 'number' : 'whole number';
      return `${at}: expected a positive ${kind}, or null for none, got ${show(limit)}`;
    }
  }
  return null;
}

function wallProblem({ wall, wallMs }: Record<string, unknown>, at: string): string {
  if (wallMs === undefined && typeof wall === 'string' && readDuration(wall) !== null) {
    return `${at}: expected at most 36500 days, got ${show(wall)}`;
  }
  return wallMs === undefined
    ? `${at}: expected whole milliseconds or words such as "5 minutes", got ${show(wall)}`
    : `${at}: expected wall or wallMs, got both; remove wallMs`;
}

/** Returns the limits with `wall` in milliseconds; a `wall` that is none stays, for the check. */
export function toLimits<Given>(given: Given): Given {
  if (!isObject(given)) return given;
  const { wall, ...rest } = given;
  const ms = typeof wall === 'number' || typeof wall === 'string' ? toMs(wall) : wall;
  const isTime = ms === null || (typeof ms === 'number' && Number.isInteger(ms) && ms > 0);
  const run = 'run' in given ? { run: toLimits(given['run']) } : {};
  const isMeant = isTime && !('wallMs' in given);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same limits in another form
  return (isMeant ? { ...rest, wallMs: ms, ...run } : { ...given, ...run }) as Given;
}

function isLimitName(name: string): name is LimitName {
  return Object.hasOwn(LIMITS, name);
}

function isLimit(name: keyof LimitSet, value: unknown): boolean {
  if (value === null) return true;
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) return false;
  return LIMITS[name] === 'money' || Number.isInteger(value);
}
