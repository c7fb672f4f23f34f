import { MODEL_BLOCKS, type ModelBlock } from '../core/blocked.js';
import type { CallModelInput } from '../core/contract.js';
import { isReply } from '../core/guards/recorded.js';
import type { Json } from '../core/json.js';
import type { ModelCall, ModelCallEnd } from '../core/loop.js';
import type { RecordedReply } from '../core/reply.js';
import type { RunState } from '../core/state.js';
import { stepSummary } from '../core/text/summaries.js';
import { promptLength } from '../core/transcript/transcript.js';
import { modelActivity } from './activities.js';
import { activityProblem, checkedResult, failureMessage } from './activity-result.js';
import { DEFERRED, takeDeferred } from './blocked-work.js';
import { retryUntilUnblocked, type BlockedAt } from './blocking.js';
import { inFlight, takeInterruption, type RunContext } from './run-context.js';

const NAME = 'model';

/** The loop's `callModel`: one activity, whose input does not grow with the conversation. */
export async function callModel(
  run: RunContext,
  state: RunState,
  call: ModelCall,
): Promise<ModelCallEnd> {
  const { closing } = call;
  const summary =
    call.cut === undefined ? stepSummary(state, closing) : `summarize ${call.cut} messages`;
  const activity = modelActivity(state.config, { summary, closing });
  const input = modelInput(run, call);
  const { resumes } = run;
  const deferred = takeDeferred(run, NAME);
  run.doing.set(NAME, `${state.config.definition.model}, ${summary}`);
  run.changed();
  try {
    if (deferred !== undefined && !closing)
      return await blockedCall(run, { activity, input }, deferred);
    // Awaited here, not in a function of its own: each promise of a step makes replay slower.
    const reply = await inFlight(run, () => activity(input));
    return replied(run, checkedResult('callModel', isReply, reply));
  } catch (error) {
    if (closing) return failedCall(run, error);
    return await blockedCall(run, { activity, input }, { error, resumes });
  } finally {
    run.doing.delete(NAME);
  }
}

/** Never rejects. */
async function blockedCall(
  run: RunContext,
  { activity, input }: { activity: ReturnType<typeof modelActivity>; input: CallModelInput },
  from: BlockedAt,
): Promise<ModelCallEnd> {
  const work = {
    name: NAME,
    reasons: MODEL_BLOCKS,
    cancelable: true,
    attempt: async (blocked: ModelBlock | undefined, paid: Json | undefined) =>
      checkedResult(
        'callModel',
        isReply,
        // The activity checks a reply that is paid for already, instead of calling the model again.
        await activity({
          ...input,
          ...(blocked !== undefined && { blocked }),
          ...(paid !== undefined && { paid }),
        }),
      ),
  };
  return await retryUntilUnblocked(run, work, from).then(
    (reply): ModelCallEnd => (reply === DEFERRED ? { type: 'deferred' } : replied(run, reply)),
    (failure: unknown) => failedCall(run, failure),
  );
}

function replied(run: RunContext, reply: RecordedReply): ModelCallEnd {
  const interrupted = takeInterruption(run);
  return { type: 'replied', reply, ...(interrupted !== null && { interrupted }) };
}

/** A failed closing call is not retried: the loop composes the answer instead. */
function failedCall(run: RunContext, error: unknown): ModelCallEnd {
  const by = takeInterruption(run);
  if (by !== null) return { type: 'interrupted', by };
  const problem = activityProblem(error);
  if (problem?.type === 'failed') return problem;
  return { type: 'failed', reason: 'error', message: problem?.message ?? failureMessage(error) };
}

function modelInput({ state, input }: RunContext, call: ModelCall): CallModelInput {
  const { definition, contextBlob, window } = state.config;
  const { context } = input;
  const reads = definition.decide === 'function' || definition.output?.type === 'function';
  return {
    upTo: promptLength(state.transcript),
    head: state.transcript.head,
    definition: definition.hash,
    turn: state.turn.number,
    step: state.turn.spent.steps + 1,
    ...(call.closing && { closing: true as const }),
    ...(call.cut !== undefined && { compact: call.cut, ...(window !== undefined && { window }) }),
    ...(state.forkedFrom && { fork: state.forkedFrom.at }),
    ...(state.dropped && { without: state.dropped }),
    ...(reads && (contextBlob ? { contextBlob } : context !== undefined && { context })),
    ...(call.maxOutputTokens !== null && { maxOutputTokens: call.maxOutputTokens }),
  };
}
