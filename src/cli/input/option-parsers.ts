import { userInfo } from 'node:os';
import { InvalidArgumentError } from 'commander';
import type { FilePermissions } from '../../agents/files-agent.js';
import {
  LIMITS,
  LIMIT_NAMES,
  type LimitName,
  type LimitSet,
  type Limits,
} from '../../core/definition/definition.js';
import type { NodeVisit } from '../../core/definition/graph-definition.js';
import { checkLimits, checkRecordedLimits, limitMaximum } from '../../core/input/limits.js';
import { limitWord } from '../../core/requests/limit-words.js';
import { type Json, type JsonObject, parseForeignJson, parseJson } from '../../core/text/json.js';
import { parseDuration, readDuration } from '../../core/text/text.js';
import { type GlobalOptions, UsageError } from '../context.js';

/** Parses a number. Throws an `InvalidArgumentError` for anything else. */
export function parseNumber(text: string): number {
  assertNumberWritten(text);
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number.');
}

/** Throws an `InvalidArgumentError` for the placeholder of a number, which a person has left. `before`: what precedes it. */
function assertNumberWritten(text: string, before = ''): void {
  if (text.trim() !== 'N') return;
  throw new InvalidArgumentError(
    `Expected your own number, got ${before}N, which stands for it in a printed command; replace it.`,
  );
}

/** The words of printed commands that stand for what the person adds. */
const PLACEHOLDERS: readonly string[] = ['TEXT', 'MESSAGE', 'edit TEXT'];

/** Throws a `UsageError` for a text that a person has left as a printed command has it. `field`: its name. */
export function checkWritten(field: string, text: string): void {
  if (!PLACEHOLDERS.includes(text.trim())) return;
  throw new UsageError(
    `${field}: expected your own words, got ${text.trim()}, which stands for them in a printed command; replace it`,
  );
}

/** Parses a node with the number of a visit, such as `judge#2`. */
export function parseNodeVisit(text: string): NodeVisit {
  const [, node = text, visit] = /^(.+)#(\d+)$/.exec(text) ?? [];
  return { node, ...(visit !== undefined && { visit: Number(visit) }) };
}

/**
 * Parses a duration such as `30m` or `2 hours` into milliseconds. Throws an `InvalidArgumentError` for
 * anything else.
 */
export function parseDurationOption(text: string): number {
  const ms = parseDuration(text);
  if (ms !== null) return ms;
  assertUnit(text);
  const unit = UNIT_OF[text.trim().toLowerCase().replace(/^@/, '')];
  const meant = unit === undefined ? '' : ` for "${text.trim()}", write ${unit}.`;
  throw new InvalidArgumentError(
    `Expected a duration of at most 36500 days, such as 30s, "90 min", 2h, or "3 days"${meant === '' ? '.' : `;${meant}`}`,
  );
}

/** Throws an `InvalidArgumentError` for a number without a unit. `before`: what precedes it in the option. */
function assertUnit(text: string, before = ''): void {
  const given = text.trim();
  if (!/^\d+(?:\.\d+)?$/.test(given)) return;
  throw new InvalidArgumentError(
    `Expected a duration with its unit, got ${given}; write for example ${before}${given}s or ${before}${given}m.`,
  );
}

/** The units that are meant by words of cron. */
const UNIT_OF: Readonly<Record<string, string | undefined>> = {
  hourly: 'hour',
  daily: 'day',
  weekly: 'week',
};

/** Checks a duration, and returns it as it was given: an error about it later names it. */
function checkedDuration(text: string): string {
  parseDurationOption(text);
  return text;
}

/** Parses JSON. Throws an `InvalidArgumentError` with the position of the mistake. */
export function parseJsonOption(text: string): Json {
  return parseLike(text, `JSON, such as '"text"' or '{"total":3}'`);
}

/** Like `parseJsonOption`, for the arguments of a call. */
export function parseArgumentsOption(text: string): Json {
  return parseLike(text, 'an object with all arguments as JSON, as the request shows them');
}

function parseLike(text: string, expected: string): Json {
  const parsed = parseForeignJson(text);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  if (parsed.ok) return parsed.value as Json;
  if (text.trim() === 'JSON') {
    throw new InvalidArgumentError(
      'Expected your own JSON, got JSON, which stands for it in a printed command; replace it.',
    );
  }
  throw new InvalidArgumentError(`Expected ${expected}: ${parsed.problem}.`);
}

/** Collects the values of a repeatable option, in order. */
export function collectValues(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/**
 * Parses `NAME=TEXT`, or `NAME:=JSON` for a value that is not a string. Each name may occur once.
 */
export function collectArguments(text: string, before: JsonObject = {}): JsonObject {
  const { name, isJson, value } = parsePair(text, before);
  return { ...before, [name]: isJson ? parseJsonOption(value) : value };
}

/**
 * Parses `NAME=VALUE`, whose value is JSON such as a number, or else a text; `NAME:=JSON` requires
 * JSON. Each name may occur once.
 */
export function collectSettings(text: string, before: JsonObject = {}): JsonObject {
  const { name, isJson, value } = parsePair(text, before);
  // A text of this letter can be given as JSON.
  if (!isJson) assertNumberWritten(value, `${name}=`);
  const read = isJson ? parseJsonOption(value) : parseJson(value);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed from JSON
  return { ...before, [name]: (read === undefined ? value : read) as Json };
}

function parsePair(text: string, before: JsonObject) {
  const [, name = '', sign, value = ''] = /^([^=:\s]+)(:?=)(.*)$/s.exec(text) ?? [];
  if (sign === undefined) throw new InvalidArgumentError('Expected NAME=TEXT or NAME:=JSON.');
  if (Object.hasOwn(before, name)) {
    throw new InvalidArgumentError(`The argument ${name} is given twice.`);
  }
  return { name, isJson: sign === ':=', value };
}

/**
 * Parses `NAME=VALUE` or `run.NAME=VALUE` as a limit. The value is a number, `none`, or a duration
 * for `wall`. Each limit may occur once.
 */
export function collectLimits(text: string, before: Limits = {}): Limits {
  return collectNamed(text, before, ', or none for no limit');
}

/** Parses `NAME=VALUE` or `run.NAME=VALUE` as the amount by which to raise a limit. */
export function collectAmounts(text: string, before: Limits = {}): Limits {
  return collectNamed(text, before, '');
}

/** `orNone`: what an error adds about `none`. */
function collectNamed(text: string, before: Limits, orNone: string): Limits {
  const [, prefix, word = '', given = ''] = /^(run\.)?([^=:\s]+)=(.+)$/s.exec(text.trim()) ?? [];
  const name = LIMIT_NAMES.find((one) => word === limitWord(one) || word === one);
  if (name === undefined) {
    const words = LIMIT_NAMES.map((one) => limitWord(one)).join(', ');
    throw new InvalidArgumentError(
      `Expected NAME=VALUE, such as steps=20, wall=10m, or run.cost-usd=5, with one of ${words}.`,
    );
  }
  const value = limitValue(name, given.trim(), orNone);
  const set: LimitSet = (prefix === undefined ? before : before.run) ?? {};
  if (Object.hasOwn(set, name)) {
    throw new InvalidArgumentError(`The limit ${prefix ?? ''}${limitWord(name)} is given twice.`);
  }
  return prefix === undefined
    ? { ...before, [name]: value }
    : { ...before, run: { ...before.run, [name]: value } };
}

/** Returns a number, or null for `none`. Throws an `InvalidArgumentError` for anything else. */
function limitValue(name: LimitName, given: string, orNone: string): number | null {
  if (given === 'none') return null;
  assertNumberWritten(given, `${limitWord(name)}=`);
  if (LIMITS[name] === 'time') assertUnit(given, `${limitWord(name)}=`);
  const value = (LIMITS[name] === 'time' ? readDuration(given) : null) ?? Number(given);
  if (checkLimits({ [name]: value }, 'limits') === null) return value;
  if (checkRecordedLimits({ [name]: value }, 'limits') === null) {
    throw new InvalidArgumentError(
      `Expected at most ${limitMaximum(name)?.text}${orNone}, got ${given}.`,
    );
  }
  const kind =
    LIMITS[name] === 'time'
      ? 'a duration such as 10m'
      : `a positive ${LIMITS[name] === 'money' ? '' : 'whole '}number`;
  throw new InvalidArgumentError(`Expected ${kind}${orNone}, got ${given}.`);
}

const MAX_CHARACTERS = 200;

/** Returns who runs the command, as the operating system reports it. The run does not verify it. */
export function osUser(): string {
  return `unverified:os-user:${userName()}`.slice(0, MAX_CHARACTERS);
}

/**
 * Returns the name of the decider: the value of `--by`, else the user of the operating system.
 * Throws a `UsageError` for a name that a run would refuse.
 */
export function deciderName(by: string | undefined): string {
  if (by === undefined) return osUser();
  if (by === 'NAME') {
    throw new UsageError(
      '--by: expected your name, got NAME, which stands for it in a printed command; replace it',
    );
  }
  if (by.trim() !== '' && by.length <= MAX_CHARACTERS) return by;
  throw new UsageError(
    `--by: expected a name of 1 to ${MAX_CHARACTERS} characters, got ${by.length}; omit it for the OS user`,
  );
}

/** Returns the user id if the user has no name, as in many containers. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** Returns what the options allow the built-in agent; empty for the default, which is reading. */
export function permissionsOf(options: GlobalOptions): FilePermissions {
  const { write = false, allowWrite, allowRead } = options;
  return {
    ...((write || allowWrite) && { write: true }),
    ...(allowWrite && { allowWrite }),
    ...(allowRead && { allowRead }),
  };
}

/** Returns the same permissions as flags for another command. */
export function permissionFlags(options: GlobalOptions): readonly string[] {
  const { write = false, allowWrite = [], allowRead = [] } = options;
  return [
    ...(write ? ['--write'] : []),
    ...allowWrite.flatMap((pattern) => ['--allow-write', pattern]),
    ...allowRead.flatMap((pattern) => ['--allow-read', pattern]),
  ];
}

/** The options of schedules. */
export const SCHEDULE_OPTIONS = {
  cron: {
    flags: '--cron <expression>',
    text: 'five fields, such as "0 9 * * MON-FRI", or a word such as @daily',
  },
  every: {
    flags: '--every <duration>',
    text: 'instead of --cron: such as 30s, hour, or "2 hours"',
    parse: checkedDuration,
  },
  timeZone: {
    flags: '--time-zone <name>',
    text: 'only with --cron: its time zone, such as Europe/Berlin; default: UTC',
  },
  to: {
    flags: '--to <run>',
    text: 'send the message to this open run; default: each firing starts a run',
  },
  overlap: {
    flags: '--overlap <policy>',
    text: 'if an earlier firing has not ended, except those of allow_all; default: skip, of trigger that of the schedule',
    choices: ['skip', 'buffer_one', 'buffer_all', 'cancel_other', 'allow_all'],
  },
  catchUp: {
    flags: '--catch-up <duration>',
    text: 'how late a missed firing still happens after the server was down; default: a year',
    parse: checkedDuration,
  },
  paused: { flags: '--paused', text: 'create it paused; see schedule resume' },
  without: {
    flags: '--without <option>',
    text: 'remove an option of the schedule, such as overlap or tag; may be repeated',
    parse: collectValues,
  },
} as const;
