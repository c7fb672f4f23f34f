import { failed } from '../core/make-outcome.js';
import type { Outcome } from '../core/outcome.js';
import { nothingSpent, getOutcome } from '../core/turn.js';
import type { EndedEvent } from './projection.js';
import type { RunReading } from './read-run.js';

/** How a run ended, by itself or by Temporal. */
export interface EndOfRun {
  /** The outcome's reason; `terminated` or `timed_out` if Temporal ended the run. */
  readonly reason: string;
  readonly outcome: Outcome;
}

/** Returns how a run ended; null for a run that continues, even in a later segment. */
export function endOfRun(run: Pick<RunReading, 'view' | 'terminatedWhy'>): EndOfRun | null {
  const { ended, state } = run.view;
  if (ended === null || ended.how === 'continued') return null;
  const recorded = run.view.outcome ?? (state === null || state.open ? null : getOutcome(state));
  if (recorded !== null) return { reason: recorded.reason, outcome: recorded };
  const message = messageOf(ended, run.terminatedWhy);
  const { steps, toolCalls, usage } = nothingSpent(null);
  const nothing = { answer: null, output: null, steps, toolCalls, usage, segments: 1 };
  return {
    reason: outsideReason(ended),
    outcome:
      state === null
        ? { status: 'failed', reason: 'error', ...nothing, error: message }
        : failed(state, { reason: 'error', message }),
  };
}

function outsideReason({ how }: EndedEvent): string {
  if (how === 'terminated') return 'terminated';
  return how === 'timed_out' ? 'timed_out' : 'error';
}

function messageOf({ how, failure }: EndedEvent, why: string): string {
  if (failure !== undefined) return failure.message;
  const suffix = why === '' ? '' : `: ${why}`;
  if (how === 'terminated') return `the workflow was terminated from outside${suffix}`;
  if (how === 'timed_out') return 'the workflow exceeded its execution timeout';
  return `the workflow ended (${how}) without an outcome`;
}
