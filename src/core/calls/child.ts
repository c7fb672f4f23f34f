import { errorText, type CallResult } from './call-result.js';
import { budgetLeft, nextDeadline } from '../limits.js';
import type { Budget, LimitSet } from '../definition/definition.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Outcome } from '../outcome.js';
import { calledMs, nodeOfCall } from '../graph/node-tool.js';
import { findTool } from './batch.js';
import type { RunState } from '../state.js';
import { getOpenBatch } from '../turn.js';

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
  const ownCost = ((state.config.price?.input ?? 0) * own) / 1e6;
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
