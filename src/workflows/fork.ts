import { upsertMemo } from '@temporalio/workflow';
import type { ForkMessagesInput } from '../core/contract.js';
import type { ForkInput } from '../core/input/input.js';
import { apply } from '../core/loop.js';
import { isForked, type ForkMessagesResult } from '../core/guards/recorded.js';
import { forkMessages, forkMessagesBlocked } from './activities.js';
import { mendInPlace } from './blocking.js';
import { refused } from './load.js';
import { fitting } from './calls/recorded-result.js';
import { inFlight, type Session } from './run-context.js';

/** Puts the messages of another run before all that is said in this one, and remembers which. */
export async function fork(session: Session, { run, at }: ForkInput): Promise<void> {
  const { name: agent, forkFrom } = session.state.config.definition;
  const input = { run, agent, ...(forkFrom && { forkFrom }), ...(at !== undefined && { at }) };
  const {
    next,
    chunk,
    head,
    tokens,
    pinned = [],
    artefacts,
    ...read
  } = await messagesOf(session, input);
  const from = { run, runId: read.from.runId, at: next };
  apply(session, {
    type: 'forked',
    from,
    chunk,
    head,
    tokens,
    pinned,
    ...(artefacts && { artefacts }),
  });
  upsertMemo({ forkedFrom: from });
}

async function messagesOf(session: Session, input: ForkMessagesInput): Promise<ForkMessagesResult> {
  const { resumes } = session;
  try {
    const taken = await inFlight(session, () => forkMessages(input));
    return fitting('forkMessages', isForked, taken);
  } catch (error) {
    const work = {
      name: 'fork',
      reasons: ['storage'],
      breakable: true,
      attempt: async (blocked: 'storage' | undefined) => {
        const taken = await forkMessagesBlocked({ ...input, ...(blocked && { blocked }) });
        return fitting('forkMessages', isForked, taken);
      },
    } as const;
    return await mendInPlace(session, work, { error, resumes }).catch((failure: unknown) => {
      // A cancel is no fault of the input.
      throw session.interruption === null ? refused(failure) : failure;
    });
  }
}
