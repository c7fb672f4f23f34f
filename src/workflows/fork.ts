import { upsertMemo } from '@temporalio/workflow';
import type { ForkMessagesResult } from '../activities/contract.js';
import type { ForkInput } from '../core/input.js';
import { apply } from '../core/loop.js';
import { forkMessages } from './activities.js';
import { refused } from './load.js';
import type { Session } from './session.js';

/** Puts the messages of another run before all that is said in this one, and remembers which. */
export async function fork(session: Session, { run, at }: ForkInput): Promise<void> {
  const {
    next,
    chunk,
    head,
    tokens,
    pinned = [],
    artefacts,
    ...read
  } = await messagesOf({ run, at });
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

async function messagesOf({
  run,
  at,
}: {
  readonly run: string;
  readonly at: number | undefined;
}): Promise<ForkMessagesResult> {
  try {
    return await forkMessages({ run, ...(at !== undefined && { at }) });
  } catch (error) {
    throw refused(error);
  }
}
