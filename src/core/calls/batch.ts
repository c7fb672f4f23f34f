import type { ToolDefinition } from '../definition/tool-definition.js';
import { needsConsent } from '../state/consent.js';
import type { RunState } from '../state/state.js';
import { visible } from '../state/summaries.js';
import { definedTool } from '../state/turn-definition.js';
import { type Batch, getOpenBatch } from '../state/turn.js';
import { findWork } from '../state/work.js';
import { isObject, parseJson } from '../text/json.js';
import { type CallResult, refusal, signature } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';

/** How long, or until which Unix time in ms, and the model's original text. */
type Wait =
  | { readonly seconds: number; readonly text: string }
  | { readonly atMs: number; readonly text: string };

interface Problem {
  /** For the model: what is wrong, and how to fix it. */
  readonly problem: string;
}

/** A wait longer than a year is treated as a mistake. */
const MAX_DAYS = 366;
const DAY_SECONDS = 86_400;
const MAX_SECONDS = MAX_DAYS * DAY_SECONDS;

/**
 * Returns the Unix time in ms at which a wait ends, or what is wrong with it. For a time in the
 * past, returns `fromMs`, the time at which the wait began. `argumentsJson` is the model's text.
 * Never throws.
 */
export function waitUntil(argumentsJson: string, fromMs: number): number | Problem {
  const wait = readWait(parseJson(argumentsJson));
  if ('problem' in wait) return wait;
  if ('seconds' in wait) return fromMs + Math.ceil(wait.seconds * 1_000);
  if (wait.atMs - fromMs > MAX_SECONDS * 1_000) {
    return {
      problem: `until ${wait.text} is more than ${MAX_DAYS} days ahead; give an earlier moment`,
    };
  }
  return Math.max(fromMs, wait.atMs);
}

/**
 * Returns the text for the model when a wait has ended. `woken`: a message ended it early. The text
 * does not depend on the current time. Never throws.
 */
export function waitedText(argumentsJson: string, woken: boolean): string {
  const wait = readWait(parseJson(argumentsJson));
  const early = 'woken early by a message';
  if ('problem' in wait) return woken ? early : 'waited';
  if ('seconds' in wait) {
    return woken ? `${early}; the wait was to take ${wait.text} s` : `waited ${wait.text} s`;
  }
  return woken ? `${early}; the wait was until ${wait.text}` : `waited until ${wait.text}`;
}

/** Returns what is wrong with the arguments of a wait, whenever it begins, or null. */
export function waitProblem(value: unknown): string | null {
  const wait = readWait(value);
  return 'problem' in wait ? wait.problem : null;
}

function readWait(value: unknown): Wait | Problem {
  const { seconds, until } = isObject(value) ? value : {};
  if ((seconds === undefined) === (until === undefined)) {
    return { problem: 'give exactly one of `seconds` (how long) and `until` (a moment)' };
  }
  return until === undefined ? readSeconds(seconds) : readMoment(until);
}

function readSeconds(seconds: unknown): Wait | Problem {
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= MAX_SECONDS)) {
    const limit = `${MAX_SECONDS} (${MAX_DAYS} days)`;
    return {
      problem: `\`seconds\` must be a positive number of at most ${limit}, not ${shortText(seconds)}`,
    };
  }
  return { seconds, text: String(seconds) };
}

const MOMENT =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?$/;

/**
 * Reads ISO 8601. Seconds and fraction are optional, and digits below a millisecond are ignored.
 * The offset is required: without it, the text would denote a different time in each time zone.
 */
function readMoment(until: unknown): Wait | Problem {
  const found = typeof until === 'string' ? MOMENT.exec(until.trim().toUpperCase()) : null;
  if (found === null) {
    return {
      problem:
        '`until` must be a moment in ISO 8601 with an offset, such as 2027-03-28T09:00:00+02:00 or ' +
        `2027-03-28T07:00:00Z, not ${shortText(until)}`,
    };
  }
  const [text] = found;
  const part = (place: number): number => Number(found[place] ?? 0);
  const days = daysSince1970({ year: part(1), month: part(2), day: part(3) });
  const [hour, minute, second] = [part(4), part(5), part(6)] as const;
  const offset = offsetMinutes(found[8]);
  if (days === null || hour > 23 || minute > 59 || second > 59 || offset === 'impossible') {
    return { problem: `until ${text} is not a valid time: a part of it is out of range` };
  }
  if (offset === 'missing') {
    const time = text.length === 10 ? `${text}T00:00:00` : text;
    return {
      problem: `until ${text} has no offset from UTC, so it may mean many moments; write ${time}Z, or the offset that is meant, such as ${time}+02:00`,
    };
  }
  const wholeSeconds = days * DAY_SECONDS + hour * 3_600 + (minute - offset) * 60 + second;
  const milliseconds = Number((found[7] ?? '').slice(0, 3).padEnd(3, '0'));
  return { atMs: wholeSeconds * 1_000 + milliseconds, text };
}

/** Returns minutes east of UTC. `Z` has no digits, which count as 0. */
function offsetMinutes(text: string | undefined): number | 'missing' | 'impossible' {
  if (text === undefined) return 'missing';
  const digits = text.slice(1).replace(':', '');
  const hours = Number(digits.slice(0, 2));
  const minutes = Number(digits.slice(2));
  if (hours > 23 || minutes > 59) return 'impossible';
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}

const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Days since 1970-01-01 in the Gregorian calendar; null for a day that does not exist. */
function daysSince1970(date: { year: number; month: number; day: number }): number | null {
  const { year, month, day } = date;
  const leapDays = daysBefore(year + 1) - daysBefore(year) - 365;
  const lengths = MONTH_DAYS.map((days, index) => (index === 1 ? days + leapDays : days));
  if (day < 1 || day > (lengths[month - 1] ?? 0)) return null;
  const earlierMonths = lengths.slice(0, month - 1).reduce((sum, days) => sum + days, 0);
  return daysBefore(year) - daysBefore(1970) + earlierMonths + day - 1;
}

/** Returns the days from the first one of year 1 to the first one of this year. */
function daysBefore(year: number): number {
  const last = year - 1;
  return last * 365 + Math.floor(last / 4) - Math.floor(last / 100) + Math.floor(last / 400);
}

/** Returns the value, shortened for an error text. */
function shortText(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 60));
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** Maximum depth of agents that call agents, regardless of the limits. */
const MAX_DEPTH = 16;

/** Returns the calls that can be executed now; the others wait for calls of the same plan. */
export function readyCalls(state: RunState, batch: Batch): readonly ToolCall[] {
  return openCalls(state, batch).filter(({ after }) => after === undefined);
}

/** The open calls of a batch, for one definition. Each event of a plan of 200 actions asks for them several times. */
const known = new WeakMap<
  Batch,
  { readonly definition: RunState['config']['definition']; readonly open: readonly ToolCall[] }
>();

/**
 * Returns the calls still to be executed, in order, without repeats of a call in the same batch.
 */
export function openCalls(state: RunState, batch: Batch): readonly ToolCall[] {
  const { definition } = state.config;
  const found = known.get(batch);
  if (found?.definition === definition) return found.open;
  const open = findOpenCalls(state, batch);
  known.set(batch, { definition, open });
  return open;
}

function findOpenCalls(state: RunState, batch: Batch): readonly ToolCall[] {
  const seen = new Set<string>();
  return batch.calls.filter((call, index) => {
    const tool = findTool(state, call.name);
    // A call that a person edited is always executed, regardless of other calls in the message.
    const guarded = tool && guardsRepeats(tool) && !call.problem && !call.edited && !call.node;
    const twin = guarded && seen.has(signature(call));
    if (guarded) seen.add(signature(call));
    return !twin && batch.results[index] === null;
  });
}

/** A wait that has not ended. */
interface OpenWait {
  readonly call: ToolCall;
  /** When it ends, Unix time in ms. */
  readonly until: number;
}

/** Returns the waits among these calls. */
export function openWaits(
  state: RunState,
  batch: Batch,
  calls: readonly ToolCall[],
): readonly OpenWait[] {
  return calls.flatMap((call) => {
    if (findTool(state, call.name)?.kind !== 'wait') return [];
    // A wait that needs approval begins when a person approves it.
    if (needsConsent(state, call) && !findWork(state, call.id)?.approved) return [];
    const until = waitUntil(call.arguments, batch.at);
    return { call, until: typeof until === 'number' ? until : batch.at };
  });
}

/** Whether a waiting message has not yet woken this turn. Each message wakes it once. */
export function hasWakingMessage({ inbox, turn }: RunState): boolean {
  return inbox.waiting.length > 0 && (inbox.count ?? 0) > (turn.wokenBy ?? 0);
}

/**
 * Returns the results of the waits that end at `at` (Unix time in ms), because they expired or a
 * message woke them.
 */
export function finishedWaits(state: RunState, at: number): readonly CallResult[] {
  const batch = getOpenBatch(state);
  if (batch === null) return [];
  const woken = hasWakingMessage(state);
  return openWaits(state, batch, openCalls(state, batch)).flatMap(({ call, until }) => {
    const over = until <= at;
    if (!over && !woken) return [];
    const text = waitedText(call.arguments, !over);
    return { id: call.id, ok: true, text, executed: true };
  });
}

/** Reasons for which a limit refuses a call, for the model. */
export const CALLS_USED_UP = 'the tool-call limit has been reached';
export const DEPTH_REACHED = 'the maximum agent depth has been reached';

/** Returns the batch with one more result, at the place of its call. */
export function fillBatch(batch: Batch, result: CallResult): Batch {
  const results = batch.calls.map((call, index) =>
    call.id === result.id ? result : (batch.results[index] ?? null),
  );
  return { ...batch, results };
}

/** Returns the result of a call that was not executed. */
export function notExecuted(call: ToolCall, reason: string): CallResult {
  return refusal(call.id, { type: 'not_executed', message: `not executed: ${reason}` });
}

/** Returns the pinned definition of a tool; undefined if the agent has none of that name. */
export function findTool(state: RunState, name: string): ToolDefinition | undefined {
  return definedTool(state.config.definition, name);
}

/** Whether the call would start an agent below the maximum depth. */
export function tooDeep(state: RunState, call: ToolCall): boolean {
  const { limits, depth = 0 } = state.config;
  if (findTool(state, call.name)?.kind !== 'agent') return false;
  const { turn, run } = limits;
  return depth >= Math.min(turn.depth ?? MAX_DEPTH, run.depth ?? MAX_DEPTH, MAX_DEPTH);
}

/** Whether a repeated call of this tool is not executed. A repeated read is legitimate polling. */
export function guardsRepeats(tool: ToolDefinition): boolean {
  return tool.effect !== 'read' && tool.repeat !== 'allow';
}

/** Returns the safety checks of a call in the provider's words. */
export function safetyWords(call: Pick<ToolCall, 'safety'>): string {
  const checks = (call.safety ?? []).map(({ code, message, id }) => {
    const words = [code, message].filter((word) => word !== undefined && word !== '');
    return visible(words.length === 0 ? id : words.join(': '));
  });
  return `the provider asks for a person's decision (${checks.join('; ')})`;
}

/**
 * Returns the open calls of a reply if the workflow task itself may execute all of them: each is an
 * allowed call of an inline tool, and nothing else is under way. Otherwise, returns none. The calls
 * have not begun, so this holds only before the first of them does.
 */
export function inlineCalls(state: RunState): readonly ToolCall[] {
  const batch = getOpenBatch(state);
  // Undoing an earlier call, or a request about it, may change what the calls read.
  if (batch === null || state.graph !== undefined || state.work.length > 0) return [];
  // Sequential calls would take one task together, and an ending call drops those after it.
  const isSequential = state.config.definition.toolCalls !== 'parallel';
  if (isSequential && batch.calls.length > 1) return [];
  const calls = openCalls(state, batch);
  return calls.every((call) => isInline(state, call)) ? calls : [];
}

/** A call of a graph's node, or one with a verdict of the rules, is never inline. */
function isInline(state: RunState, { name, node, verdict, safety }: ToolCall): boolean {
  if (node !== undefined || verdict !== undefined || safety !== undefined) return false;
  const tool = findTool(state, name);
  if (tool?.inline !== true || tool.effect !== 'read' || tool.kind !== undefined) return false;
  return state.notInline?.includes(name) !== true;
}
