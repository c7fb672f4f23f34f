import type { RetrieveInput, RetrieveResult } from '../core/contract.js';
import { TOOL_BLOCKS, type ToolBlock } from '../core/blocked.js';
import type { RetrievalEnd } from '../core/loop.js';
import { isRetrieved } from '../core/guards/recorded.js';
import type { RunState } from '../core/state.js';
import { promptLength } from '../core/transcript/transcript.js';
import { retrieveActivity } from './activities.js';
import { mend, type BlockedAt } from './blocking.js';
import { messageOf, problemOf } from './problem.js';
import { fitting } from './calls/recorded-result.js';
import { inFlight, takeInterruption, type Session } from './run-context.js';
import { LEFT, takeUp } from './standing.js';

const NAME = 'retrieve';

/** The loop's `retrieve`: one activity with a constant-size input. */
export async function retrieve(
  session: Session,
  state: RunState,
  asked: number,
): Promise<RetrievalEnd> {
  const activity = retrieveActivity(state.config);
  const input = retrieveInput(session, asked);
  const { resumes } = session;
  const stood = takeUp(session, NAME);
  session.doing.set(NAME, NAME);
  session.changed();
  try {
    if (stood !== undefined) return await blockedRetrieval(session, { activity, input }, stood);
    const found = await inFlight(session, () => activity(input));
    return retrieved(session, fitting('retrieveDocuments', isRetrieved, found));
  } catch (error) {
    return await blockedRetrieval(session, { activity, input }, { error, resumes });
  } finally {
    session.doing.delete(NAME);
  }
}

/** Never rejects. */
async function blockedRetrieval(
  session: Session,
  { activity, input }: { activity: ReturnType<typeof retrieveActivity>; input: RetrieveInput },
  from: BlockedAt,
): Promise<RetrievalEnd> {
  const work = {
    name: NAME,
    reasons: TOOL_BLOCKS,
    breakable: true,
    attempt: async (blocked: ToolBlock | undefined) =>
      fitting(
        'retrieveDocuments',
        isRetrieved,
        await activity(blocked === undefined ? input : { ...input, blocked }),
      ),
  };
  return await mend(session, work, from).then(
    (result): RetrievalEnd => (result === LEFT ? { type: 'left' } : retrieved(session, result)),
    (failure: unknown) => failed(session, failure),
  );
}

function retrieved(session: Session, { documents }: RetrieveResult): RetrievalEnd {
  const interrupted = takeInterruption(session);
  return { type: 'retrieved', documents, ...(interrupted !== null && { interrupted }) };
}

/** An answer without its sources is not what the author asked for: the turn ends. */
function failed(session: Session, error: unknown): RetrievalEnd {
  const by = takeInterruption(session);
  if (by !== null) return { type: 'interrupted', by };
  return { type: 'failed', message: problemOf(error)?.message ?? `retrieve: ${messageOf(error)}` };
}

function retrieveInput({ state, input }: Session, asked: number): RetrieveInput {
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
