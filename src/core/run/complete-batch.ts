import { nameArtifacts } from '../calls/artifacts.js';
import { findTool, guardsRepeats, notExecuted, openCalls } from '../calls/batch.js';
import { countDenials } from '../calls/open-batch.js';
import type { Budget, LimitSet } from '../definition/definition.js';
import { hooksOf } from '../graph/hooks.js';
import { budgetLeft, nextDeadline } from '../rules/limits.js';
import { appendMessage, completed, endTurn, withTurn } from '../state/change.js';
import type { RunState } from '../state/state.js';
import { callSummary } from '../state/summaries.js';
import { calledMs, nodeOfCall } from '../state/turn-definition.js';
import { type Batch, type Turn, getOpenBatch } from '../state/turn.js';
import { sha256Hex } from '../text/json.js';
import { headOf } from '../text/text.js';
import {
  type CallResult,
  errorText,
  recordedOk,
  shortSignature,
  signature,
} from '../transcript/call-result.js';
import { isCatalogCall } from '../transcript/catalog.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Outcome } from '../transcript/outcome.js';

/**
 * The number of calls per turn whose repeats are answered from the transcript. All are passed from
 * segment to segment.
 */
const REMEMBERED_CALLS = 1_000;

/** Closes the open batch if nothing is left to execute. `at`: Unix time in ms. */
export function completeBatch(state: RunState, at: number): RunState {
  const batch = getOpenBatch(state);
  if (batch === null) return state;
  const hooks = hooksOf(state);
  const worked = hooks?.worked(state, batch, at) ?? null;
  if (worked !== null) return worked;
  const ended = endingCall(state, batch);
  if (ended === null && openCalls(state, batch).length > 0) return state;
  // The remaining calls of a sequential batch are dropped when its ending call succeeds.
  const parallel = state.config.definition.toolCalls === 'parallel';
  if (ended !== null && parallel && openCalls(state, batch).length > 0) return state;
  const closed = closeBatch(state, at, (call) => notExecuted(call, 'the turn ended before it'));
  const executed = hooks?.executed(closed, batch, at) ?? null;
  if (executed !== null) return executed;
  if (ended === null) return closed;
  return endTurn(
    closed,
    completed(closed, {
      reason: 'tool',
      answer: ended.text,
      blob: ended.blob,
      output: ended.output,
    }),
  );
}

function endingCall(state: RunState, batch: Batch): CallResult | null {
  const index = batch.calls.findIndex(
    (call, at) => batch.results[at]?.ok === true && findTool(state, call.name)?.ends === true,
  );
  return batch.results[index] ?? null;
}

/**
 * Closes the open batch: its results join the transcript in call order, `missing` supplies each
 * absent result, and the turn records the data for the repeat guards. Does nothing without a batch.
 */
export function closeBatch(
  state: RunState,
  at: number,
  missing: (call: ToolCall) => CallResult,
): RunState {
  const brokenOff = hooksOf(state)?.brokenOff(state, at) ?? null;
  if (brokenOff !== null) return brokenOff;
  const named = nameArtifacts(state, getOpenBatch(state)?.calls.length);
  const batch = getOpenBatch(named);
  if (batch === null) return state;
  const results = resultsWithMissing(batch, missing);
  let next: RunState = withTurn(named, { phase: { type: 'deciding' } });
  results.forEach((result, index) => {
    const call = batch.calls[index];
    if (call === undefined) return;
    next = withTurn(next, {
      ...guardedRepeats(next, call, result),
      ...countDenials(next, call, result),
    });
    next = appendMessage(next, result.at ?? at, {
      role: 'tool',
      text: call.edited ? `${editedNote(call)}\n${result.text}` : result.text,
      ...(result.blob && { blob: result.blob }),
      callId: result.id,
      ...recordedOk(result),
      ...(result.attachments && { attachments: result.attachments }),
      ...(result.acknowledged && { acknowledged: true }),
      ...(result.grant !== undefined && { grant: result.grant }),
      ...(call.edited && result.executed && { edited: callSummary(call) }),
    });
  });
  const allFailed = results.every((result) => !result.ok);
  return withTurn(next, { failedSteps: allFailed ? next.turn.failedSteps + 1 : 0 });
}

/** Returns the note that shows the model the arguments that were actually used. */
function editedNote({ arguments: json, blob }: ToolCall): string {
  const shown = blob === undefined ? json : `${blob.bytes} bytes, stored as ${blob.sha256}`;
  return `[a person changed the arguments before this was executed: ${cutText(shown)}]`;
}

const NOTE_CHARACTERS = 4_000;

function cutText(text: string): string {
  if (text.length <= NOTE_CHARACTERS) return text;
  return `${headOf(text, NOTE_CHARACTERS)}… (${text.length} characters)`;
}

/**
 * Returns a result for each call: its own, that of an identical earlier call, or the one from
 * `missing`.
 */
function resultsWithMissing(
  batch: Batch,
  missing: (call: ToolCall) => CallResult,
): readonly CallResult[] {
  const firsts = new Map<string, CallResult>();
  return batch.calls.map((call, index) => {
    const own = batch.results[index] ?? null;
    const first = firsts.get(signature(call));
    const result = own ?? (first === undefined ? missing(call) : repeatedResult(call, first));
    if (own !== null && !firsts.has(signature(call))) firsts.set(signature(call), own);
    return result;
  });
}

function repeatedResult(call: ToolCall, first: CallResult): CallResult {
  const what = first.executed ? ', which was executed once' : '';
  const text = `[identical to ${first.id}${what}]\n${first.text}`;
  return { ...first, id: call.id, text, executed: false };
}

function guardedRepeats(state: RunState, call: ToolCall, result: CallResult): Partial<Turn> {
  // A turn that repeats the same catalog question makes no progress either.
  if (result.ok && isCatalogCall(state.config.definition, call))
    return sameRead(state, call, result);
  const tool = findTool(state, call.name);
  if (tool === undefined || !result.executed) return { sameRead: null };
  if (tool.effect !== 'read') {
    if (!result.ok || !guardsRepeats(tool) || isUndone(state, call.id)) return { sameRead: null };
    return {
      sameRead: null,
      succeeded: [...state.turn.succeeded, `${shortSignature(call)} ${call.id}`].slice(
        -REMEMBERED_CALLS,
      ),
    };
  }
  return tool.repeat === 'allow' ? { sameRead: null } : sameRead(state, call, result);
}

/** Whether a call was undone before all calls of its message had ended. */
function isUndone({ config, kept = [] }: RunState, id: string): boolean {
  if (!config.revised) return false;
  return kept.some(({ call, state }) => call.id === id && state === 'undone');
}

function sameRead(state: RunState, call: ToolCall, result: CallResult): Partial<Turn> {
  const digest = sha256Hex(`${signature(call)}\n${result.text}`);
  const step = state.turn.spent.steps;
  const last = state.turn.sameRead;
  if (last?.digest !== digest) return { sameRead: { digest, step, count: 1 } };
  // The same read twice in one message is wasteful, but not a sign of a loop.
  return { sameRead: { digest, step, count: last.step === step ? last.count : last.count + 1 } };
}

/**
 * Share of the remaining time that is reserved for the caller, to answer with its agents' results.
 */
const OWN_TIME = 0.1;
/** Tokens reserved for the caller's own next model call, in addition to the prompt. */
const OWN_TOKENS = 1_024;

/** How a child run ended. `outcome` is null if the run left none. */
export interface ChildEnd {
  readonly outcome: Outcome | null;
  readonly message: string;
}

/**
 * Returns the budget of one of the agents that a message calls: an equal share of the caller's
 * budget that remains after its own next model call. `now`: Unix time in ms.
 */
export function childBudget(state: RunState, now: number): LimitSet {
  const calls =
    getOpenBatch(state)?.calls.filter(({ name }) => findTool(state, name)?.kind === 'agent') ?? [];
  const among = Math.max(1, calls.length);
  const { tokens, costUsd } = budgetLeft(state) ?? {};
  const own = state.transcript.tokens + OWN_TOKENS;
  const ownCost = (((state.config.highestPrice ?? state.config.price)?.input ?? 0) * own) / 1e6;
  const deadline = nextDeadline(state);
  const wallMs = least([
    deadline === null ? null : Math.max(1, Math.floor((deadline.at - now) * (1 - OWN_TIME))),
    calledMs(state),
  ]);
  return {
    ...(tokens !== undefined && { tokens: Math.max(1, Math.floor((tokens - own) / among)) }),
    ...(costUsd !== undefined && { costUsd: Math.max(1e-9, (costUsd - ownCost) / among) }),
    ...(wallMs !== null && { wallMs }),
  };
}

/** What limits the model calls of a node's function. */
export interface NodeAllowance {
  /** Its share of the remaining tokens and money; absent if nothing limits them. */
  readonly left?: Budget;
  /** Maximum number of failed attempts; absent: the run waits until the model answers. */
  readonly attempts?: number;
}

/**
 * Returns the budget of one of the node's calls that have no result yet: an equal share of what
 * remains. Null if nothing limits it.
 */
export function nodeBudget(state: RunState): Budget | null {
  const left = budgetLeft(state);
  const among = getOpenBatch(state)?.results.filter((result) => result === null).length ?? 1;
  if (left === null || among <= 1) return left;
  const { tokens, costUsd } = left;
  return {
    ...(tokens !== undefined && { tokens: Math.floor(tokens / among) }),
    ...(costUsd !== undefined && { costUsd: costUsd / among }),
  };
}

/**
 * Returns the call's result: the text for the caller's model and the usage charged to the caller.
 */
export function childResult(call: ToolCall, { outcome, message }: ChildEnd): CallResult {
  if (outcome === null) {
    return { id: call.id, ok: false, text: failure(message), executed: true };
  }
  const { status, reason, answer, usage, blob } = outcome;
  const { output: value, error = null } = outcome;
  const output = { status, reason, answer, value, error };
  const spent = {
    id: call.id,
    executed: true,
    usage,
    ...(nodeOfCall(call) !== null && { output }),
  };
  switch (status) {
    case 'completed':
      return { ...spent, ok: true, text: resultText(outcome), ...(blob && { blob }) };
    case 'stopped':
      return { ...spent, ok: true, text: `[stopped: ${reason}]\n${answer ?? ''}` };
    case 'cancelled':
      return { ...spent, ok: false, text: failure('canceled') };
    case 'failed':
      return { ...spent, ok: false, text: failure(`${reason}: ${outcome.error ?? message}`) };
  }
}

/** The typed output as JSON if there is one, else the answer. */
function resultText({ output, answer }: Outcome): string {
  return output === null || typeof output === 'string' ? (answer ?? '') : JSON.stringify(output);
}

function failure(message: string): string {
  return errorText({ type: 'agent_failed', message: message.slice(0, 3_000) });
}

function least(amounts: readonly (number | null)[]): number | null {
  const set = amounts.filter((amount) => amount !== null);
  return set.length === 0 ? null : Math.min(...set);
}
