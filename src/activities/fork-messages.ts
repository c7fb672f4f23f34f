import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { NoRunError } from '../client/read-run.js';
import { transcriptOf } from '../client/run-transcript.js';
import type { ActivityProblem } from '../core/failure.js';
import { artefactsBefore, promptBefore } from '../core/fork.js';
import type { Message } from '../core/messages.js';
import { visible } from '../core/summaries.js';
import { chain, FIRST_LINK, messageTokens, promptOf } from '../core/transcript.js';
import type { ForkMessagesInput, ForkMessagesResult } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { writeChunk } from './prompt-chunk.js';

/** What is pinned goes into the history, beside the rest that does not. */
const PINNED_BYTES = 128 * 1024;

/**
 * Keeps what the model of another run saw before message `at` as a part of a prompt. Fails with
 * `ForkRefused` where there is no such run or message, or where they cannot be had any more.
 */
export async function forkMessages(
  { archive, blobs }: Pick<ActivityDependencies, 'archive' | 'blobs'>,
  { run, at }: ForkMessagesInput,
): Promise<ForkMessagesResult> {
  const { client } = Context.current();
  const told = await transcriptOf(client, run, { archive }).catch((error: unknown) => {
    throw error instanceof NoRunError ? refused(`fork.run: ${error.message}`) : error;
  });
  const { messages: said, total, ownFrom, runId } = told;
  const name = visible(run);
  if (total === 0) throw refused(`fork.run: run "${name}" has no messages; start a new run`);
  if (at !== undefined && at > total) {
    throw refused(`fork.at: ${at} is more than the ${total} messages of run "${name}"`);
  }
  const { messages, at: next, needs } = promptBefore(said, { at: at ?? total, own: ownFrom });
  if (told.completeFrom > needs) {
    throw refused(
      `fork.run: of the messages of "${name}" before ${told.completeFrom} some are missing: ` +
        'neither the server nor the archive has them any more',
    );
  }
  const pinned = pinnedOf(messages);
  const artefacts = artefactsBefore(told.artefacts ?? [], said, next);
  return {
    chunk: { blob: await blobs.put(writeChunk(messages)), count: messages.length },
    head: messages.reduce((head, message) => chain(head, promptOf(message)), FIRST_LINK),
    tokens: messages.reduce((sum, message) => sum + messageTokens(message), 0),
    next,
    from: { runId },
    ...(pinned.length > 0 && { pinned }),
    ...(artefacts.length > 0 && { artefacts }),
  };
}

function pinnedOf(messages: readonly Message[]): readonly Message[] {
  let bytes = 0;
  return messages.filter((message) => {
    if (message.role !== 'user' || message.pinned !== true) return false;
    bytes += Buffer.byteLength(JSON.stringify(message));
    return bytes <= PINNED_BYTES;
  });
}

function refused(message: string): ApplicationFailure {
  const problem: ActivityProblem = { type: 'failed', reason: 'input', message };
  return ApplicationFailure.create({
    type: 'ForkRefused',
    nonRetryable: true,
    message,
    details: [problem],
  });
}
