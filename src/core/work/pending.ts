import { safetyPending } from '../calls/safety.js';
import type { RunState } from '../state.js';
import { openCallById } from '../turn.js';
import type { Pending } from '../status.js';

/** Returns the decisions that a person has to make. `run`: the run's id in the commands. */
export function pendingDecisions(state: RunState, run: string): readonly Pending[] {
  return state.work.flatMap((work): readonly Pending[] => {
    const call = openCallById(state, work.name);
    if (work.phase !== 'asking' || call === undefined) return [];
    if (work.about === 'safety_check') return [safetyPending(call, run)];
    return [
      {
        type: 'outcome_unknown',
        call: call.id,
        tool: call.name,
        arguments: call.arguments,
        idempotencyKey: work.key ?? '',
        fix: `perdure resolve ${run} ${call.id} --as happened|retry|abandon [--result JSON]`,
      },
    ];
  });
}
