import { TOOL_BLOCKS, type ToolBlock } from '../core/blocked.js';
import type { RetrieveInput, RetrieveResult } from '../core/contract.js';
import { isRetrieval } from '../core/guards/recorded.js';
import type { RetrievalEnd } from '../core/loop.js';
import type { RunState } from '../core/state.js';
import { promptLength } from '../core/transcript/transcript.js';
import { retrieveActivity } from './activities.js';
import { activityProblem, checkedResult, failureMessage } from './activity-result.js';
import { DEFERRED, takeDeferred } from './blocked-work.js';
import { retryUntilUnblocked, type BlockedAt } from './blocking.js';
import { inFlight, takeInterruption, type RunContext } from './run-context.js';

const NAME = 'retrieve';

/** The loop's `retrieve`: one activity, whose input does not grow with the conversation. */
export async function retrieve(
  run: RunContext,
  state: RunState,
  asked: number,
): Promise<RetrievalEnd> {
  const activity = retrieveActivity(state.config);
  const input = retrieveInput(run, asked);
  const { resumes } = run;
  const deferred = takeDeferred(run, NAME);
  run.doing.set(NAME, NAME);
  run.changed();
  try {
    if (deferred !== undefined) return await blockedRetrieval(run, { activity, input }, deferred);
    const found = await inFlight(run, () => activity(input));
    return retrieved(run, checkedResult('retrieveDocuments', isRetrieval, found));
  } catch (error) {
    return await blockedRetrieval(run, { activity, input }, { error, resumes });
  } finally {
    run.doing.delete(NAME);
  }
}

/** Never rejects. */
async function blockedRetrieval(
  run: RunContext,
  { activity, input }: { activity: ReturnType<typeof retrieveActivity>; input: RetrieveInput },
  from: BlockedAt,
): Promise<RetrievalEnd> {
  const work = {
    name: NAME,
    reasons: TOOL_BLOCKS,
    cancelable: true,
    attempt: async (blocked: ToolBlock | undefined) =>
      checkedResult(
        'retrieveDocuments',
        isRetrieval,
        await activity(blocked === undefined ? input : { ...input, blocked }),
      ),
  };
  return await retryUntilUnblocked(run, work, from).then(
    (result): RetrievalEnd => (result === DEFERRED ? { type: 'deferred' } : retrieved(run, result)),
    (failure: unknown) => failedRetrieval(run, failure),
  );
}

function retrieved(run: RunContext, { documents }: RetrieveResult): RetrievalEnd {
  const interrupted = takeInterruption(run);
  return { type: 'retrieved', documents, ...(interrupted !== null && { interrupted }) };
}

/** A failed retrieval ends the turn, because its author does not want an answer without sources. */
function failedRetrieval(run: RunContext, error: unknown): RetrievalEnd {
  const by = takeInterruption(run);
  if (by !== null) return { type: 'interrupted', by };
  const message = activityProblem(error)?.message ?? `retrieve: ${failureMessage(error)}`;
  return { type: 'failed', message };
}

function retrieveInput({ state, input }: RunContext, asked: number): RetrieveInput {
  const { definition, contextBlob } = state.config;
  const { context } = input;
  return {
    upTo: promptLength(state.transcript),
    head: state.transcript.head,
    definition: definition.hash,
    turn: state.turn.number,
    asked,
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
  };
}
