import { parseForeignJson } from '../../core/foreign-json.js';
import { InvalidArgumentError } from 'commander';
import {
  LIMIT_NAMES,
  type LimitName,
  type Limits,
  type LimitSet,
} from '../../core/definition/definition.js';
import { checkLimits } from '../../core/input/check-limits.js';
import { limitWord } from '../../core/requests/commands.js';
import { parseDuration } from '../../core/text/duration.js';
import { parseJson, type Json, type JsonObject } from '../../core/json.js';

/** Parses a number. Throws an `InvalidArgumentError` for anything else. */
export function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number.');
}

/**
 * Parses a duration such as `30m` or `2 hours` into milliseconds. Throws an `InvalidArgumentError` for
 * anything else.
 */
export function parseDurationOption(text: string): number {
  const ms = parseDuration(text);
  if (ms !== null) return ms;
  throw new InvalidArgumentError(
    'Expected a duration of at most 100 years, such as 30s, "90 min", 2h, or "3 days".',
  );
}

/** Parses JSON. Throws an `InvalidArgumentError` with the position of the mistake. */
export function parseJsonOption(text: string): Json {
  const parsed = parseForeignJson(text);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  if (parsed.ok) return parsed.value as Json;
  throw new InvalidArgumentError(`Expected JSON: ${parsed.problem}.`);
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
  const [, prefix, word = '', given = ''] = /^(run\.)?([^=:\s]+)=(.+)$/s.exec(text.trim()) ?? [];
  const name = LIMIT_NAMES.find((one) => word === limitWord(one) || word === one);
  if (name === undefined) {
    const words = LIMIT_NAMES.map((one) => limitWord(one)).join(', ');
    throw new InvalidArgumentError(
      `Expected NAME=VALUE, such as steps=20, wall=10m, or run.cost-usd=5, with one of ${words}.`,
    );
  }
  const value = limitValue(name, given.trim());
  const set: LimitSet = (prefix === undefined ? before : before.run) ?? {};
  if (Object.hasOwn(set, name)) {
    throw new InvalidArgumentError(`The limit ${prefix ?? ''}${limitWord(name)} is given twice.`);
  }
  return prefix === undefined
    ? { ...before, [name]: value }
    : { ...before, run: { ...before.run, [name]: value } };
}

/** Returns a number, or null for `none`. Throws an `InvalidArgumentError` for anything else. */
function limitValue(name: LimitName, given: string): number | null {
  if (given === 'none') return null;
  const value = (name === 'wallMs' ? parseDuration(given) : null) ?? Number(given);
  if (checkLimits({ [name]: value }, 'limits') === null) return value;
  const kind =
    name === 'wallMs'
      ? 'a duration such as 10m'
      : `a positive ${name === 'costUsd' ? '' : 'whole '}number`;
  throw new InvalidArgumentError(`Expected ${kind}, or none for no limit, got ${given}.`);
}
