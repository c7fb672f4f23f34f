import type { CallModelInput } from '../activities/contract.js';
import { MODEL_BLOCKS } from '../core/blocked.js';
import type { ModelCall, ModelCallEnd } from '../core/loop.js';
import type { RunState } from '../core/state.js';
import { stepSummary } from '../core/summaries.js';
import { modelActivity } from './activities.js';
import { untilMended } from './blocking.js';
import { messageOf, problemOf } from './problem.js';
import { inFlight, takeInterruption, type Session } from './session.js';

const NAME = 'model';

/** The loop's `callModel`: one activity with a constant-size input. */
export async function callModel(
  session: Session,
  state: RunState,
  call: ModelCall,
): Promise<ModelCallEnd> {
  const { closing } = call;
  const summary = stepSummary(state, closing);
  const activity = modelActivity({ summary, closing });
  session.doing.set(NAME, `${state.config.definition.model}, ${summary}`);
  session.changed();
  try {
    const input = modelInput(state, call);
    // A closing call has a rung below it, so it does not wait for anybody.
    const reply = closing
      ? await inFlight(session, () => activity(input))
      : await untilMended(session, {
          name: NAME,
          reasons: MODEL_BLOCKS,
          breakable: true,
          attempt: (blocked) => activity(blocked === undefined ? input : { ...input, blocked }),
        });
    return { type: 'replied', reply };
  } catch (error) {
    const by = takeInterruption(session);
    if (by !== null) return { type: 'interrupted', by };
    const problem = problemOf(error);
    if (problem?.type === 'failed') return problem;
    return { type: 'failed', reason: 'error', message: problem?.message ?? messageOf(error) };
  } finally {
    session.doing.delete(NAME);
  }
}

function modelInput(state: RunState, call: ModelCall): CallModelInput {
  return {
    upTo: state.transcript.messages.length,
    head: state.transcript.head,
    definition: state.config.definition.hash,
    turn: state.turn.number,
    step: state.turn.spent.steps + 1,
    ...(call.closing && { closing: true as const }),
    ...(call.maxOutputTokens !== null && { maxOutputTokens: call.maxOutputTokens }),
  };
}
