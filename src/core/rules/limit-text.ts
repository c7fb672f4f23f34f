import { type BudgetName, LIMITS } from '../definition/definition.js';
import type { RunState } from '../state/state.js';
import type { StopReason } from '../transcript/outcome.js';
import { leastNeeded, usedOf } from './limits.js';

/** Significant digits of an estimated amount of money. */
const DIGITS = 2;

/**
 * Returns why a limit stops a run: it was reached, or less is used and the next model call would not fit
 * into it. `word`: what the limit is called.
 */
export function reachedText(state: RunState, name: StopReason, word: string = name): string {
  const left = leftForCall(state, name);
  if (left === null || !isBudget(name)) return `the limit "${word}" was reached`;
  const needed = leastNeeded(state, name);
  if (needed === null) {
    return `the limit "${word}" allows no model call, since the price of the model is unknown`;
  }
  // Another call than the next one of the conversation may have been refused.
  const amount = needed > left ? `: it needs at least ${amountText(name, needed)}` : '';
  return `the next model call would not fit into the limit "${word}"${amount}`;
}

/**
 * Returns what is left of a limit that stops a run, although not all of it is used; null if the limit was reached.
 */
export function leftForCall(state: RunState, name: StopReason): number | null {
  if (!isBudget(name)) return null;
  const { limits } = state.config;
  const left = (['turn', 'run'] as const).map(
    (scope) =>
      (limits[scope][name] ?? Infinity) - usedOf(name, { state, scope, at: state.startedAt }),
  );
  const least = Math.min(...left);
  return least > 0 && least < Infinity ? least : null;
}

function isBudget(name: StopReason): name is BudgetName {
  return name === 'tokens' || name === 'costUsd';
}

function amountText(name: BudgetName, amount: number): string {
  return LIMITS[name] === 'money'
    ? `${Number(amount.toPrecision(DIGITS))} USD`
    : `${Math.ceil(amount)} tokens`;
}
