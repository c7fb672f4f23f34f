import { LIMIT_NAMES, type LimitName, type LimitSet } from '../definition/definition.js';
import { isObject } from '../json.js';
import { toMs } from '../text/duration.js';
import { show } from '../text/format-value.js';

/** Returns what is wrong with a set of limits, or null. `path`: the field that holds the set. */
export function checkLimits(value: unknown, path: string): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) {
    return `${path}: expected an object, got ${show(value)}; give for example {"steps": 10}`;
  }
  for (const [name, limit] of Object.entries(value)) {
    const at = `${path}.${name}`;
    if (name === 'run' && path === 'limits') {
      const inner = checkLimits(limit, at);
      if (inner !== null) return inner;
    } else if (!isLimitName(name)) {
      if (name === 'wall') return wallProblem(value, at);
      return `${at}: expected one of ${LIMIT_NAMES.join(', ')}, or limits.run for the whole run`;
    } else if (!isLimit(name, limit)) {
      if (name === 'wallMs' && typeof limit === 'string') {
        return `${at}: expected a positive number of ms, got ${show(limit)}; for words, write wall: ${show(limit)}`;
      }
      const kind = name === 'costUsd' ? 'number' : 'whole number';
      return `${at}: expected a positive ${kind}, or null for none, got ${show(limit)}`;
    }
  }
  return null;
}

function wallProblem({ wall, wallMs }: Record<string, unknown>, at: string): string {
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
  return (LIMIT_NAMES as readonly string[]).includes(name);
}

function isLimit(name: keyof LimitSet, value: unknown): boolean {
  if (value === null) return true;
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) return false;
  return name === 'costUsd' || Number.isInteger(value);
}
