import { predicateMisfit } from '../core/definition/predicate-misfit.js';
import type { JsonObject } from '../core/text/json.js';
import { isRecord } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import {
  COMPLETE_REASONS,
  FAIL_REASONS,
  type Outcome,
  STOP_REASONS,
} from '../core/transcript/outcome.js';
import { REQUEST_KINDS } from '../core/transcript/request.js';
import { likelyMeant } from '../validation/near-names.js';

/** A tool that a run could call, with the schemas of its arguments. */
export interface KnownTool {
  readonly name: string;
  readonly schemas: readonly JsonObject[];
}

/** The names that a run of these agents can have. */
export interface KnownNames {
  readonly tools: readonly KnownTool[];
  /** MCP servers of which no tool is known: their tools have any names. */
  readonly unlisted: readonly string[];
}

/** What the runs of this process know. A run that a test puts together is not among them. */
const KNOWN = new WeakMap<object, KnownNames>();

/** Notes which names a run can have, so that a matcher can refuse a misspelled one. */
export function noteKnown(run: object, names: KnownNames): void {
  KNOWN.set(run, names);
}

/**
 * Returns why no call of a run can have this tool, or the tool these arguments; null if one may, or if
 * nothing is known about the run.
 */
export function callMisfit(run: object, tool: string, input: unknown): string | null {
  const known = KNOWN.get(run);
  if (known === undefined || isUnlisted(known, tool)) return null;
  const found = known.tools.find(({ name }) => name === tool);
  if (found !== undefined) return inputMisfit(found, input);
  const names = known.tools.map(({ name }) => name);
  return `expected a tool of the agent, got ${show(tool)} (${hintFor(tool, names)})`;
}

/** Like `callMisfit`, for what a request is about: a tool or a kind of request. */
export function requestMisfit(run: object, about: string, input: unknown): string | null {
  const known = KNOWN.get(run);
  if (known === undefined || isUnlisted(known, about)) return null;
  if (REQUEST_KINDS.some((kind) => kind === about)) return null;
  const found = known.tools.find(({ name }) => name === about);
  if (found !== undefined) return inputMisfit(found, input);
  const names = [...known.tools.map(({ name }) => name), ...REQUEST_KINDS];
  return `expected a tool of the agent or a kind of request, got ${show(about)} (${hintFor(about, names)})`;
}

const STATUSES: readonly string[] = [
  'completed',
  'stopped',
  'cancelled',
  'failed',
] satisfies readonly Outcome['status'][];
const REASONS: readonly string[] = [
  ...COMPLETE_REASONS,
  ...STOP_REASONS,
  'cancelled',
  ...FAIL_REASONS,
];

/** Whether a text is a reason of an outcome, and no status. */
export function isReason(text: string): boolean {
  return REASONS.includes(text) && !STATUSES.includes(text);
}

/** Returns why no run can end so; null if one may. */
export function endMisfit(expected: string | Readonly<Record<string, unknown>>): string | null {
  if (typeof expected === 'string') {
    return endNameMisfit(expected, 'a status or a reason', [...STATUSES, ...REASONS]);
  }
  return (
    endNameMisfit(expected['status'], 'a status', STATUSES) ??
    endNameMisfit(expected['reason'], 'a reason', REASONS)
  );
}

function endNameMisfit(text: unknown, what: string, names: readonly string[]): string | null {
  if (typeof text !== 'string' || names.includes(text)) return null;
  return `expected ${what}, got ${show(text)} (${hintFor(text, names)})`;
}

function isUnlisted({ unlisted }: KnownNames, name: string): boolean {
  return unlisted.some((server) => name.startsWith(`${server}__`));
}

function hintFor(name: string, names: readonly string[]): string {
  const meant = likelyMeant(name, names);
  return meant === undefined
    ? `there are ${[...new Set(names)].join(', ')}`
    : `did you mean ${show(meant)}?`;
}

/** Compares the names of plain objects only: a matcher in them may mean anything. */
function inputMisfit({ name, schemas }: KnownTool, input: unknown): string | null {
  for (const path of pathsIn(input)) {
    const tool = { name, schemas, meantBy: likelyMeant };
    const misfit = predicateMisfit({ op: 'exists', path }, tool, 'input');
    if (misfit !== null) return misfit.replace(/^input\.path: |; correct it$/g, '');
  }
  return null;
}

function pathsIn(value: unknown): readonly string[] {
  if (!isRecord(value) || Object.getPrototypeOf(value) !== Object.prototype) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key.includes('.') || inner === undefined
      ? []
      : [key, ...pathsIn(inner).map((path) => `${key}.${path}`)],
  );
}
