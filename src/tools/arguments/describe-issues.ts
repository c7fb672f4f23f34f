import type { z } from 'zod';
import type { Json } from '../../core/json.js';
import { nearestFirst } from '../nearest.js';
import { headBytes } from '../utf8.js';

const MAX_ISSUES = 10;
const MAX_NAMES = 40;

/** How faults of the value as a whole, which have no path, are put. */
export interface RootWords {
  /** The keys that the value may have. */
  readonly names: readonly string[];
  /** On keys that it may not have; `nearest` are the possible ones, nearest first, or empty. */
  unrecognized(keys: string, nearest: string): string;
  /** Stands in the place of the path; absent: nothing does, and what came is not shown. */
  readonly root?: string;
}

/**
 * Validation issues for a model, one line each, ten at most: the path, what was expected, what came.
 */
export function describeIssues(
  issues: readonly z.core.$ZodIssue[],
  value: Json,
  words: RootWords,
): string[] {
  const shown = issues
    .slice(0, MAX_ISSUES)
    .map((issue) => `- ${describeIssue(issue, value, words)}`);
  if (issues.length > MAX_ISSUES) shown.push(`- and ${issues.length - MAX_ISSUES} more`);
  return shown;
}

function describeIssue(issue: z.core.$ZodIssue, value: Json, words: RootWords): string {
  const path = readablePath(issue.path) || (words.root ?? '');
  const came = valueAt(value, issue.path);
  if (issue.code === 'unrecognized_keys') return unrecognized(issue, words);
  const label = path === '' ? '' : `${path}: `;
  if (came === undefined && issue.code !== 'custom')
    return `${label}missing, ${expectation(issue)}`;
  const shown = path === '' ? '' : `, got ${short(came)}`;
  return `${label}${expectation(issue)}${shown}`;
}

function unrecognized(issue: z.core.$ZodIssueUnrecognizedKeys, words: RootWords): string {
  const keys = issue.keys.map((key) => short(key)).join(', ');
  if (issue.path.length > 0) return `${readablePath(issue.path)}: there is no ${keys} here`;
  const names = nearestFirst(issue.keys[0] ?? '', words.names).slice(0, MAX_NAMES);
  return words.unrecognized(keys, names.join(', '));
}

function expectation(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return `expected ${issue.expected}`;
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) {
    const message = issue.message.replace(/^Invalid \w+: /, '');
    return headBytes(message, 300);
  }
  const alternatives = issue.errors.map((issues) =>
    issues
      .slice(0, 3)
      .map((inner) => `${readablePath(inner.path)} ${expectation(inner)}`.trim())
      .join(' and '),
  );
  return `fits none of the alternatives (${alternatives.slice(0, 5).join('; or ')})`;
}

/** `["items", 0, "name"]` → `items[0].name`. */
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

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 60 ? `${headBytes(text, 60)}…` : text;
}
