import type { Projection } from '../../history/projection.js';
import type { BlockedReason } from '../../core/blocked.js';
import type { Message, UserMessage } from '../../core/transcript/messages.js';
import { callSummary, formatBytes, visible } from '../../core/text/summaries.js';
import type { Palette } from '../format/output.js';
import { formatCount, formatDuration } from '../format/format.js';
import { waitingFor } from '../../history/waiting-for.js';
import { formatDateTime } from '../format/format-time.js';

const NAMED_CALLS = 3;
/** Lines about the past when a run is joined late. */
const EARLIER_LINES = 5;

type AssistantMessage = Extract<Message, { role: 'assistant' }>;
type ToolMessage = Extract<Message, { role: 'tool' }>;

/** Tells what has newly become durable, and what the run has come to wait for, one line each. */
export type StepLines = (view: Projection) => readonly string[];

/** What to type for what stands still. */
export interface Fixes {
  /** For a call that a person has to decide about, with the decisions there are. */
  readonly settle: (call: string, decisions: string) => string;
  /** For what has been mended; null where that is told otherwise. */
  readonly resume: string | null;
}

/** A teller remembers what it has told: ask it with each view of one run, in order. */
export function createStepLines(paint: Palette, cures: Fixes): StepLines {
  const waitLinesOf = createWaitLines(paint, cures.resume);
  let told = -1;
  let segment = 0;
  let blockedSince = 0;
  return (view) => {
    const lines: string[] = [];
    for (const [at, { n }] of view.said.entries()) {
      if (n <= told) continue;
      const line = messageLine(view.said, at, paint);
      if (line === undefined) break;
      if (line !== null) lines.push(line);
      told = n;
    }
    lines.push(...waitLinesOf(view));
    // A new segment counts its events from 1 again.
    if (view.state !== null && view.state.segments !== segment) {
      segment = view.state.segments;
      blockedSince = 0;
    }
    const blocks = [...view.blocked].filter(([, { since }]) => since > blockedSince);
    blockedSince = Math.max(blockedSince, ...blocks.map(([, { since }]) => since));
    for (const [name, { reason, message }] of blocks) {
      lines.push(paint.yellow(`blocked (${reason}): ${visible(message)}`));
      const cure = fixFor(name, reason, cures);
      if (cure !== null) lines.push(cure);
    }
    return lines;
  };
}

function fixFor(name: string, reason: BlockedReason, { settle, resume }: Fixes): string | null {
  if (reason === 'outcome_unknown') {
    return `Find out whether ${name} happened, and say it with: ${settle(name, 'happened|retry|abandon')}`;
  }
  if (reason === 'safety_check') {
    return `Look whether ${name} may be done, and say it with: ${settle(name, 'retry|abandon')}`;
  }
  return resume === null ? null : `It is tried again now and then; at once with: ${resume}`;
}

/** @returns null where there is nothing to say, undefined while the step is not complete */
function messageLine(
  messages: readonly Message[],
  at: number,
  paint: Palette,
): string | null | undefined {
  const message = messages[at];
  if (message?.role === 'user') return saidLine(message, messages[at - 1], paint);
  if (message?.role !== 'assistant' || message.calls === undefined) return null;
  const results = messages
    .slice(at + 1, at + 1 + message.calls.length)
    .filter((result) => result.role === 'tool');
  if (results.length < message.calls.length) return undefined;
  const begunAt = messages[at - 1]?.at ?? message.at;
  const endedAt = results.at(-1)?.at ?? message.at;
  return [
    paint.bold(`step ${message.step}`),
    visible(callsOf(message)),
    resultsOf(results, paint),
    paint.dim(formatDuration(endedAt - begunAt)),
  ].join(' · ');
}

function callsOf({ calls = [] }: AssistantMessage): string {
  const named = calls.slice(0, NAMED_CALLS).map((call) => callSummary(call));
  if (calls.length === 1) return named.join('');
  const more = calls.length > NAMED_CALLS ? ', …' : '';
  return `${calls.length} calls: ${named.join(', ')}${more}`;
}

function resultsOf(results: readonly ToolMessage[], paint: Palette): string {
  const size = formatBytes(results.reduce((sum, { text }) => sum + text.length, 0));
  const errors = results.flatMap(({ text }) => errorOf(text) ?? []);
  const [first] = errors;
  if (first === undefined) return size;
  if (results.length === 1) return paint.red(first);
  return `${size} · ${paint.red(`${errors.length} failed, the first: ${first}`)}`;
}

/** What the engine tells a model of a failed call, in short. */
function errorOf(text: string): string | null {
  const [, type, message] =
    /^\{"error":\{"type":"(\w+)","message":"((?:[^"\\]|\\.){0,80})/.exec(text) ?? [];
  return type === undefined ? null : visible(message ? `${type}: ${message}` : type);
}

/** What a run that is joined late has told before: the end of it. */
export function recent(lines: readonly string[], paint: Palette): readonly string[] {
  const earlier = lines.length - EARLIER_LINES;
  if (earlier <= 0) return lines;
  return [paint.dim(`… ${formatCount(earlier, 'earlier line')}`), ...lines.slice(-EARLIER_LINES)];
}

/**
 * What people and the engine have said to the model, in a line; null where there is nothing to tell.
 * `before`: the message before it, where that is known.
 */
function saidLine(
  message: UserMessage,
  before: Message | undefined,
  paint: Palette,
): string | null {
  const { compacts, document, origin, side, turn, text } = message;
  if (compacts !== undefined) {
    const { from, to } = compacts;
    return paint.dim(`from here on a summary stands for messages ${from} to ${to}`);
  }
  if (side) return paint.yellow(refusedLine(text));
  if (origin === 'perdure') {
    return paint.yellow('a limit is reached: one last call, for an answer from what is there');
  }
  if (origin === 'retrieved') {
    const name = document?.source ?? document?.id ?? 'a document';
    return paint.dim(
      visible(`retrieved ${name} · ${formatBytes(message.blob?.bytes ?? text.length)}`),
    );
  }
  if (before !== undefined && before.turn === turn) {
    return `joins turn ${turn} · ${visible(text)}`;
  }
  // Whoever starts a run knows what they have said.
  return turn === 1 ? null : `${paint.bold(`turn ${turn}`)} · ${visible(text)}`;
}

/** What the model is told of an answer that was refused: the attempt and what is wrong, in a line. */
function refusedLine(text: string): string {
  const [, attempt = '', rest = text] =
    /^Your answer was not accepted \(attempt (\d+ of \d+)\)\.\n\n(.*)$/s.exec(text) ?? [];
  const [problem = ''] = rest.split('\n\n');
  return visible(`answer refused${attempt === '' ? '' : `, attempt ${attempt}`}: ${problem}`);
}

/** Tells what a run has come to wait for, one line each. */
type WaitLines = (view: Projection) => readonly string[];

/**
 * A teller remembers what it has told: ask it with each view of one run, in order. `resume`: what
 * to type for a run that is paused; null where that is told otherwise.
 */
function createWaitLines(paint: Palette, resume: string | null): WaitLines {
  let paused = false;
  let toldUntil = 0;
  return (view) => {
    const { state } = view;
    if (state === null || view.ended !== null) return [];
    const lines: string[] = [];
    if (state.paused !== paused) {
      paused = state.paused;
      lines.push(paint.yellow(paused ? pausedText(view) : 'it goes on'));
      if (paused && resume !== null) lines.push(`Let it go on with: ${resume}`);
    }
    const standing = waitingFor(view);
    if (standing?.type === 'time' && standing.until !== toldUntil) {
      toldUntil = standing.until;
      lines.push(`waiting until ${formatDateTime(toldUntil)}; a message wakes it`);
    }
    return lines;
  };
}

function pausedText({ inFlight }: Projection): string {
  const rest = inFlight.size === 0 ? '' : 'what is in flight ends, ';
  return `paused: ${rest}nothing more is started`;
}
