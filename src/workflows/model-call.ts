import type { CallModelInput } from '../core/contract.js';
import { MODEL_BLOCKS, type ModelBlock } from '../core/blocked.js';
import type { Json } from '../core/json.js';
import type { ModelCall, ModelCallEnd } from '../core/loop.js';
import { isReply } from '../core/guards/recorded.js';
import type { RecordedReply } from '../core/reply.js';
import type { RunState } from '../core/state.js';
import { stepSummary } from '../core/text/summaries.js';
import { promptLength } from '../core/transcript/transcript.js';
import { modelActivity } from './activities.js';
import { mend, type BlockedAt } from './blocking.js';
import { messageOf, problemOf } from './problem.js';
import { fitting } from './calls/recorded-result.js';
import { inFlight, takeInterruption, type Session } from './run-context.js';
import { LEFT, takeUp } from './standing.js';

const NAME = 'model';

/** The loop's `callModel`: one activity with a constant-size input. */
export async function callModel(
  session: Session,
  state: RunState,
  call: ModelCall,
): Promise<ModelCallEnd> {
  const { closing } = call;
  const summary =
    call.cut === undefined ? stepSummary(state, closing) : `summarize ${call.cut} messages`;
  const activity = modelActivity(state.config, { summary, closing });
  const input = modelInput(session, call);
  const { resumes } = session;
  const stood = takeUp(session, NAME);
  session.doing.set(NAME, `${state.config.definition.model}, ${summary}`);
  session.changed();
  try {
    if (stood !== undefined && !closing)
      return await blockedCall(session, { activity, input }, stood);
    // Awaited here and not in a layer of its own: each promise of a step costs replay time.
    const reply = await inFlight(session, () => activity(input));
    return replied(session, fitting('callModel', isReply, reply));
  } catch (error) {
    if (closing) return failedCall(session, error);
    return await blockedCall(session, { activity, input }, { error, resumes });
  } finally {
    session.doing.delete(NAME);
  }
}

/** Never rejects. */
async function blockedCall(
  session: Session,
  { activity, input }: { activity: ReturnType<typeof modelActivity>; input: CallModelInput },
  from: BlockedAt,
): Promise<ModelCallEnd> {
  const work = {
    name: NAME,
    reasons: MODEL_BLOCKS,
    breakable: true,
    attempt: async (blocked: ModelBlock | undefined, paid: Json | undefined) =>
      fitting(
        'callModel',
        isReply,
        // What a blocked call has paid for, the next one takes in place of asking again.
        await activity({
          ...input,
          ...(blocked !== undefined && { blocked }),
          ...(paid !== undefined && { paid }),
        }),
      ),
  };
  return await mend(session, work, from).then(
    (reply): ModelCallEnd => (reply === LEFT ? { type: 'left' } : replied(session, reply)),
    (failure: unknown) => failedCall(session, failure),
  );
}

function replied(session: Session, reply: RecordedReply): ModelCallEnd {
  const interrupted = takeInterruption(session);
  return { type: 'replied', reply, ...(interrupted !== null && { interrupted }) };
}

/** A closing call has a rung below it, and an end is an end; neither waits for anybody. */
function failedCall(session: Session, error: unknown): ModelCallEnd {
  const by = takeInterruption(session);
  if (by !== null) return { type: 'interrupted', by };
  const problem = problemOf(error);
  if (problem?.type === 'failed') return problem;
  return { type: 'failed', reason: 'error', message: problem?.message ?? messageOf(error) };
}

function modelInput({ state, input }: Session, call: ModelCall): CallModelInput {
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
