import { itemsText } from '../../core/graph/items.js';
import { presentRequest } from '../../core/requests/presentation.js';
import { isClosingText } from '../../core/rules/documents.js';
import { type ActionProgress, SKIPPED, isSkipped } from '../../core/run/details.js';
import { givenResult } from '../../core/state/decisions.js';
import type { RunState } from '../../core/state/state.js';
import type { RunStatus } from '../../core/state/status.js';
import {
  actorText,
  callSummary,
  formatBytes,
  visible,
  visibleMessage,
  listInLine,
} from '../../core/state/summaries.js';
import { type JsonObject, isObject, textField } from '../../core/text/json.js';
import { shorten } from '../../core/text/text.js';
import { failureOf, nodeFailureText } from '../../core/transcript/call-result.js';
import type {
  AssistantMessage,
  Message,
  ToolMessage,
  UserMessage,
} from '../../core/transcript/messages.js';
import type { DurableStep } from '../../history/durable-steps.js';
import { type Projection, waitingFor } from '../../history/projection.js';
import {
  type Palette,
  formatCount,
  formatDateTime,
  formatDuration,
  wrapped,
} from '../format/format.js';
import { viewedRequests } from '../requests/show-request.js';

const NAMED_CALLS = 3;
/** The maximum length of the message of an error, in UTF-16 units. */
const MAX_MESSAGE = 80;

/** Returns lines about one run. */
export interface StepLines {
  /** Returns the lines of the next steps of a run, of which the view shows all messages. */
  steps(steps: readonly DurableStep[], view: Projection): readonly string[];
  /** Returns a line for each new reason to wait and each new request. It remembers those. */
  now(view: Projection): readonly string[];
}

/** What the lines about a waiting run refer to. */
export interface Fixes {
  /** The id of the run. */
  readonly run: string;
  /** The command to resume; null if it is shown elsewhere. */
  readonly resume: string | null;
  /** Returns a text in which each command can be pasted. */
  readonly runnable: (text: string) => string;
  /** Whether the open requests of a view are shown in full at the same moment; default: never. */
  readonly showsRequests?: (view: Projection) => boolean;
  /** The width of a line about a request, in columns; default: any. */
  readonly width?: number;
}

/** Creates the lines of one run. */
export function createStepLines(paint: Palette, fixes: Fixes): StepLines {
  return {
    steps: (steps, view) => steps.flatMap((step) => progressLine(step, view, paint) ?? []),
    now: createNowLines(paint, fixes),
  };
}

/** Returns the line of a step, with what the run's messages say about it; null if it needs none. */
function progressLine(step: DurableStep, view: Projection, paint: Palette): string | null {
  switch (step.type) {
    case 'message-added': {
      const { message } = step;
      if (message.role === 'assistant') return null;
      if (message.origin === 'perdure') return engineLine(view.state, message, paint);
      // A note of the engine, such as that of an undo, may precede the message that begins a turn.
      const before = view.messages.findLast(
        (one) => one.n < message.n && !('origin' in one && one.origin === 'perdure'),
      );
      return messageLine(message, before, paint);
    }
    case 'transcript-compacted': {
      const { from, to } = step.message.compacts ?? {};
      return paint.dim(`a summary replaces messages ${from} to ${to} from here on`);
    }
    case 'answer-refused':
      return paint.yellow(refusedLine(step.problem));
    case 'call-finished':
      return replyLine(step.message, view, paint);
    case 'action-changed':
      return actionLine(step.action, paint);
    case 'node-ended':
      return nodeLine(step, paint);
    case 'request-closed':
      // A decision has lines of its own.
      return step.as === null ? paint.dim(`request ${visible(step.request)} is closed`) : null;
    case 'undo-changed':
      return undoLine(step, paint);
    default:
      return null;
  }
}

function createNowLines(paint: Palette, fixes: Fixes): StepLines['now'] {
  const waitLines = createWaitLines(paint, fixes.resume);
  const raised = new Set<string>();
  const missing = new Set<string>();
  let segment = 0;
  let blockedSince = 0;
  return (view) => {
    const lines = [...waitLines(view)];
    for (const line of leftLines(view.state?.config.definition.mcp ?? {})) {
      if (missing.has(line)) continue;
      missing.add(line);
      lines.push(paint.yellow(`without ${line}`));
    }
    const requests = fixes.showsRequests?.(view) ? [] : viewedRequests(view, fixes.run);
    for (const request of requests) {
      const { id, kind, digest } = request;
      if (raised.has(digest)) continue;
      raised.add(digest);
      const line = `request ${visible(id)} (${kind}): ${visible(presentRequest(request).headline)}`;
      lines.push(...wrapped(line, fixes.width ?? Infinity).map((row) => paint.yellow(row)));
    }
    // A new segment counts its events from 1 again.
    if (view.state !== null && view.state.segments !== segment) {
      segment = view.state.segments;
      blockedSince = 0;
    }
    const blocks = [...view.blocked].filter(([, { since }]) => since > blockedSince);
    blockedSince = Math.max(blockedSince, ...blocks.map(([, { since }]) => since));
    // Several calls may be blocked by the same reason.
    const whole = (text: string): string => visibleMessage(fixes.runnable(text));
    const reasons = new Set(
      blocks.map(([, { reason, message }]) => `blocked (${reason}): ${whole(message)}`),
    );
    for (const text of reasons) lines.push(paint.yellow(text));
    if (reasons.size > 0 && fixes.resume !== null) {
      lines.push(`It is retried automatically; retry at once with: ${fixes.resume}`);
    }
    return lines;
  };
}

/** Returns a line for each MCP server that was not available at the start, so the run works without it. */
export function leftLines({ left = [] }: Pick<RunStatus, 'left'>): readonly string[] {
  return left.map(({ server, message }) => visibleMessage(`MCP server ${server}: ${message}`));
}

type NodeEnd = Extract<DurableStep, { type: 'node-ended' }>;

/**
 * Returns the line for a node that has ended: its exit, its items, its error, its work, and its time.
 */
export function nodeLine(step: NodeEnd, paint: Palette): string {
  const { node, exit, ms, patch = {}, items } = step;
  const error = Object.values(patch).find((value) => isObject(value) && value['node'] === node);
  const why = exit === 'failed' && isObject(error) ? ` · ${errorLine(error)}` : '';
  return [
    paint.bold(`node ${visible(node)}`),
    exit === 'failed' ? paint.red(`failed${why}`) : exitText(step),
    ...(items === undefined ? [] : itemParts(items, paint)),
    ...workLines(step),
    ...(step.by === undefined ? [] : [`decided by ${actorText(step)}`]),
    // Without the wait for the person, nothing is left that they would take for its time.
    ...(ms > 0 && step.by === undefined ? [paint.dim(formatDuration(ms))] : []),
  ].join(' · ');
}

/** Returns the line for an action of a plan that has ended; null for any other action. */
export function actionLine(
  { id, state, tool, shown, message = '' }: ActionProgress,
  paint: Palette,
): string | null {
  if (state !== 'done' && state !== 'failed') return null;
  const skipped = state === 'failed' && isSkipped({ message });
  const reason = skipped ? message.slice(SKIPPED.length) : message;
  const why = reason === '' ? '' : ` · ${reasonText(reason)}`;
  const end = state === 'failed' ? paint.red(`${skipped ? 'skipped' : 'failed'}${why}`) : state;
  return `${paint.bold(`action ${visible(id)}`)} · ${visible(shown || tool)} · ${end}`;
}

/** Returns the line for the undo of a call. */
function undoLine(
  { call, tool, state, message = '' }: Extract<DurableStep, { type: 'undo-changed' }>,
  paint: Palette,
): string {
  const why = message === '' ? '' : `: ${reasonText(message)}`;
  const end = state === 'failed' ? paint.red(`failed${why}`) : `${state}${why}`;
  return `${paint.bold(`undo of ${visible(call)}`)} · ${visible(tool)} · ${end}`;
}

/** Returns how a node ended. An exit that its author has named, such as `yes`, must not look like an answer. */
function exitText({ exit, interrupted, actions }: NodeEnd): string {
  if (interrupted === true) return exit;
  const ids = actions === undefined || actions.length === 0 ? '' : `: ${actions.join(', ')}`;
  if (exit !== 'done') return visible(`exit ${exit}${ids}`);
  return actions === undefined ? exit : 'no action to execute';
}

/** Returns the parts about the items of an `each`, with why some of them failed. */
function itemParts(
  { done, total, errors = [] }: NonNullable<NodeEnd['items']>,
  paint: Palette,
): readonly string[] {
  const reasons = errors.map(({ item, message }) =>
    paint.red(`item ${item}: ${reasonText(message)}`),
  );
  const failed = total - done;
  const more = failed - errors.length;
  const rest = errors.length > 0 && more > 0 ? [`${more} more failed`] : [];
  return [itemsText({ ended: total, failed, total }), ...reasons, ...rest];
}

/** Returns the parts about the model calls, steps, and attempts of a node's visit. */
function workLines({ modelCalls, steps, attempts }: NodeEnd): readonly string[] {
  return [
    ...(modelCalls === undefined ? [] : [formatCount(modelCalls, 'model call')]),
    ...(steps === undefined ? [] : [formatCount(steps, 'step')]),
    ...(attempts === undefined ? [] : [`${formatCount(attempts, 'attempt')} in all`]),
  ];
}

function errorLine(error: JsonObject): string {
  const [type, message] = [textField(error, 'type'), textField(error, 'message')];
  const line = nodeFailureText({ type, message });
  return visible(shorten(line, MAX_MESSAGE));
}

/** Returns the line of the step whose last call has this result; null if it is not the last one. */
function replyLine(
  last: ToolMessage,
  { messages, state, waitedByMessage }: Pick<Projection, 'messages' | 'state' | 'waitedByMessage'>,
  paint: Palette,
): string | null {
  const at = messages.findLastIndex(({ n, role }) => n < last.n && role === 'assistant');
  const message = messages[at];
  if (message?.role !== 'assistant' || message.calls === undefined) return null;
  const results = messages
    .slice(at + 1, at + 1 + message.calls.length)
    .filter((result) => result.role === 'tool');
  if (results.length < message.calls.length || results.at(-1)?.n !== last.n) return null;
  return [
    paint.bold(`step ${message.step}`),
    visible(callsOf(message, { results, state })),
    resultsOf(results, paint),
    paint.dim(
      formatDuration(stepMs(message, { before: messages.slice(0, at), results, waitedByMessage })),
    ),
  ].join(' · ');
}

/**
 * Returns how long a step took: from the message before it to its last result, without the time in
 * which the run only waited for people, because a request was open or the run was paused.
 */
function stepMs(
  message: AssistantMessage,
  {
    before,
    results,
    waitedByMessage,
  }: Pick<Projection, 'waitedByMessage'> &
    Readonly<{ before: readonly Message[]; results: readonly Message[] }>,
): number {
  // Results are in the order of their calls, not in that of their arrival.
  const startedAt = newestAt(before) ?? message.at;
  const endedAt = newestAt(results) ?? message.at;
  const waitedAt = ({ n = 0 }: Partial<Message> = {}): number => waitedByMessage.get(n) ?? 0;
  const waited = waitedAt(results.at(-1)) - waitedAt(before.at(-1));
  return Math.max(0, endedAt - startedAt - waited);
}

/** Returns the time of the newest of the last messages, those of one batch; undefined without any. */
function newestAt(messages: readonly Message[]): number | undefined {
  const from = messages.findLastIndex(({ role }) => role !== 'tool');
  const last = messages.slice(Math.max(0, from));
  return last.length === 0 ? undefined : Math.max(...last.map(({ at }) => at));
}

/**
 * Names the calls as they were executed: a person may have changed their arguments, or may have given the
 * result in place of the tool.
 */
function callsOf(
  { calls = [] }: AssistantMessage,
  { results, state }: { readonly results: readonly ToolMessage[]; readonly state: RunState | null },
): string {
  const named = calls.slice(0, NAMED_CALLS).map((call) => {
    const { edited } = results.find(({ callId }) => callId === call.id) ?? {};
    const given = givenResult(state?.decisions, call.id);
    if (given !== undefined) return `${callSummary(call)} (result given by ${actorText(given)})`;
    return edited === undefined ? callSummary(call) : `${edited} (edited)`;
  });
  if (calls.length === 1) return named.join('');
  const more = calls.length > NAMED_CALLS ? ', …' : '';
  return `${calls.length} calls: ${named.join(', ')}${more}`;
}

function resultsOf(results: readonly ToolMessage[], paint: Palette): string {
  const size = formatBytes(results.reduce((sum, result) => sum + bytesOf(result), 0));
  const errors = results.flatMap((result) => failureLine(result) ?? []);
  const [first] = errors;
  if (first === undefined) return size;
  if (results.length === 1) return paint.red(first);
  return `${size} · ${paint.red(`${errors.length} failed, the first: ${first}`)}`;
}

/** Returns the size of a message in UTF-8; of one in the blob store, that of the whole text. */
function bytesOf({ blob, text }: ToolMessage | UserMessage): number {
  return blob?.bytes ?? Buffer.byteLength(text);
}

/** Returns the error of a failed call, shortened; null if the call succeeded. */
function failureLine(result: ToolMessage): string | null {
  const failure = failureOf(result);
  if (failure === null) return null;
  return reasonText([failure.type, failure.message].filter((part) => part !== '').join(': '));
}

/** Returns why something failed in one line, shortened. */
function reasonText(message: string): string {
  return visible(shorten(listInLine(message), MAX_MESSAGE));
}

/**
 * Returns the line for a message to the model from a person or a retrieval; null if it needs none.
 * `before` is the previous message, if known.
 */
function messageLine(
  message: UserMessage,
  before: Message | undefined,
  paint: Palette,
): string | null {
  const { document, origin, turn, text } = message;
  // The line of the node says it.
  if (origin === 'graph') return null;
  if (origin === 'retrieved') {
    const name = document?.source ?? document?.id ?? 'a document';
    return paint.dim(visible(`retrieved ${name} · ${formatBytes(bytesOf(message))}`));
  }
  if (before !== undefined && before.turn === turn) {
    return `joins turn ${turn} · ${visible(text)}`;
  }
  // The caller knows the first message.
  return turn === 1 ? null : `${paint.bold(`turn ${turn}`)} · ${visible(text)}`;
}

/**
 * Returns the line for a message by the engine: the last call at a limit, or a note of one line, such
 * as that of a person. The report on a plan has none, because the lines of its nodes say it.
 */
function engineLine(state: RunState | null, { text }: UserMessage, paint: Palette): string | null {
  if (state !== null && isClosingText(state, text)) {
    return paint.yellow('limit reached: one last model call for an answer');
  }
  return text.includes('\n') ? null : paint.dim(visible(text));
}

/** Shortens the message about a refused answer to its attempt and its problem. */
function refusedLine(text: string): string {
  const [, attempt = '', rest = text] =
    /^Your answer was not accepted \(attempt (\d+ of \d+)\)\.\n\n(.*)$/s.exec(text) ?? [];
  const problem = listInLine(rest.split('\n\n')[0] ?? '');
  return visible(`answer refused${attempt === '' ? '' : `, attempt ${attempt}`}: ${problem}`);
}

/** Returns a line for each new reason to wait. */
type WaitLines = (view: Projection) => readonly string[];

/**
 * Creates the function to call with each view of one run, in order. `resume` is the command for a
 * paused run; null if it is shown elsewhere.
 */
function createWaitLines(paint: Palette, resume: string | null): WaitLines {
  let paused = false;
  let shownUntil = 0;
  return (view) => {
    const { state } = view;
    if (state === null || view.ended !== null) return [];
    const lines: string[] = [];
    if (state.paused !== paused) {
      paused = state.paused;
      lines.push(paint.yellow(paused ? pausedText(view) : 'resumed'));
      if (paused && resume !== null) lines.push(`Resume it with: ${resume}`);
    }
    const waiting = waitingFor(view);
    if (waiting?.type === 'time' && waiting.until !== shownUntil) {
      shownUntil = waiting.until;
      lines.push(`waiting until ${formatDateTime(shownUntil)}, or until a message arrives`);
    }
    return lines;
  };
}

function pausedText({ inFlight }: Projection): string {
  const rest = inFlight.size === 0 ? '' : 'calls in flight finish, ';
  return `paused: ${rest}nothing new starts`;
}
