import type { z } from 'zod';
import { show } from '../core/text/format-value.js';
import { nearestFirst } from './nearest.js';

const MAX_ISSUES = 10;
const MAX_NAMES = 40;
const MAX_EXPECTATION_CHARACTERS = 300;

/** How to describe issues with the value as a whole, whose path is empty. */
export interface RootDescription {
  /** Replaces the empty path. If absent, the line has no path and omits the received value. */
  readonly root?: string;
  /**
   * The keys that the value may have, and the text about other keys; `nearest` lists the possible
   * ones, nearest first, and may be empty. If absent, the issue's own message is used.
   */
  readonly keys?: {
    readonly known: readonly string[];
    unrecognized(keys: string, nearest: string): string;
  };
  /**
   * Whether objects and lists are only named, and so is a text where an object or a list was expected:
   * options may hold secrets. Default: false.
   */
  readonly hidesObjects?: boolean;
}

/**
 * Describes validation issues, one line each and at most ten: `- path: expected X, got Y; fix`.
 *
 * A custom message of the form `expected X; fix` is split around the received value. An issue whose
 * `params` are `{ secret: true }` never shows the value.
 */
export function describeIssues(
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  description: RootDescription,
): string[] {
  const lines = issues
    .slice(0, MAX_ISSUES)
    .map((issue) => `- ${describeIssue(issue, value, description)}`);
  if (issues.length > MAX_ISSUES) lines.push(`- and ${issues.length - MAX_ISSUES} more`);
  return lines;
}

function describeIssue(
  issue: z.core.$ZodIssue,
  value: unknown,
  description: RootDescription,
): string {
  const path = readablePath(issue.path) || (description.root ?? '');
  const label = path === '' ? '' : `${path}: `;
  if (issue.code === 'unrecognized_keys') return describeKeys(issue, description);
  const received = valueAt(value, issue.path);
  if (received === undefined && issue.code !== 'custom') {
    return `${label}missing, ${expectation(issue)}`;
  }
  const isHidden = path === '' || (issue.code === 'custom' && issue.params?.['secret'] === true);
  if (isHidden) return label + expectation(issue);
  const shown = description.hidesObjects ? shownOption(issue, received) : shownValue(received);
  return label + withReceived(expectation(issue), shown);
}

function shownValue(value: unknown): string {
  return typeof value === 'number' ? String(value) : show(value);
}

/** The kinds of values that are shown in place of another of them. */
const PLAIN: readonly string[] = ['string', 'number', 'int', 'boolean'];

function shownOption(issue: z.core.$ZodIssue, value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid date' : 'a date';
  if (typeof value === 'object' && value !== null) return 'an object';
  const isExpectedPlain = issue.code !== 'invalid_type' || PLAIN.includes(issue.expected);
  return typeof value === 'string' && !isExpectedPlain ? 'a text' : shownValue(value);
}

function describeKeys(
  issue: z.core.$ZodIssueUnrecognizedKeys,
  { keys: root }: RootDescription,
): string {
  const keys = issue.keys.map((key) => show(key)).join(', ');
  if (issue.path.length === 0 && root !== undefined) {
    const nearest = nearestFirst(issue.keys[0] ?? '', root.known).slice(0, MAX_NAMES);
    return root.unrecognized(keys, nearest.join(', '));
  }
  const path = issue.path.length === 0 ? '' : `${readablePath(issue.path)}: `;
  return issue.message.startsWith('Unrecognized key')
    ? `${path}unknown field ${keys}`
    : path + issue.message;
}

/** Inserts the received value after what was expected and before the fix. */
function withReceived(text: string, shown: string): string {
  const fix = text.startsWith('expected ') ? text.indexOf('; ') : -1;
  return fix === -1
    ? `${text}, got ${shown}`
    : `${text.slice(0, fix)}, got ${shown}${text.slice(fix)}`;
}

function expectation(issue: z.core.$ZodIssue): string {
  const isOwnText = !issue.message.startsWith('Invalid input');
  if (issue.code === 'invalid_type' && !isOwnText) return `expected ${issue.expected}`;
  if (issue.code !== 'invalid_union' || issue.errors.length === 0 || isOwnText) {
    const text = issue.message
      .replace(/^(?:Invalid \w+|Too \w+): /, '')
      .replace(/^Invalid (?=(?:ISO|email|UUID|URL)\b)/, 'expected ');
    return Array.from(text).slice(0, MAX_EXPECTATION_CHARACTERS).join('');
  }
  const alternatives = issue.errors.map((issues) =>
    issues
      .slice(0, 3)
      .map((inner) => `${readablePath(inner.path)} ${expectation(inner)}`.trim())
      .join(' and '),
  );
  return `fits none of the alternatives (${alternatives.slice(0, 5).join('; or ')})`;
}

/** Writes a path as in code: `["items", 0, "name"]` becomes `items[0].name`. */
export function readablePath(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return steps.join('').replace(/^\./, '');
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((here, step) => {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, step)) return undefined;
    return Reflect.get(here, step) as unknown;
  }, value);
}
