import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Archive } from '../storage/archive.js';
import { handOn } from '../storage/attached-text.js';
import type { BlobStore } from '../storage/blob-store.js';
import { readAgentName, readLineage } from '../history/run-lineage.js';
import { transcriptOf } from '../history/run-transcript.js';
import type { ActivityProblem } from '../core/failure.js';
import { artifactsBefore, promptBefore } from '../core/input/fork.js';
import type { Message } from '../core/transcript/messages.js';
import { visible } from '../core/text/summaries.js';
import {
  chain,
  FIRST_LINK,
  messageTokens,
  toPromptMessage,
} from '../core/transcript/transcript.js';
import type { ForkMessagesInput, ForkMessagesResult } from '../core/contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { withStorageMapping } from './storage-faults.js';
import { writeChunk } from './model/prompt-chunk.js';
import { NoRunError } from '../core/errors.js';

/** What is pinned goes into the history, beside the rest that does not. */
const PINNED_BYTES = 128 * 1024;

/**
 * Keeps what the model of another run saw before message `at` as a part of a prompt, and what is attached
 * to it as this run's own. Fails with `ForkRefused` where there is no such run or message, where they
 * cannot be had any more, and where the run is another agent's that `forkFrom` does not name.
 */
export async function forkMessages(
  deps: Pick<ActivityDependencies, 'archive' | 'blobs'>,
  input: ForkMessagesInput,
): Promise<ForkMessagesResult> {
  return await withStorageMapping(input, () => forked(deps, input));
}

async function forked(
  { archive, blobs }: Pick<ActivityDependencies, 'archive' | 'blobs'>,
  { run, at, agent, forkFrom = [] }: ForkMessagesInput,
): Promise<ForkMessagesResult> {
  const { client, info } = Context.current();
  const owner = await readAgentName(client, run).catch(asRefused);
  if (owner !== agent && !forkFrom.includes(owner)) {
    throw refused(
      `fork.run: run "${visible(run)}" is of agent "${visible(owner)}", and agent "${agent}" may not take ` +
        `its messages; name it in the option forkFrom of "${agent}" to allow that`,
    );
  }
  const faults: unknown[] = [];
  const watched = watchedArchive(archive, faults);
  const told = await transcriptOf(client, run, { archive: watched }).catch(asRefused);
  const { messages: said, total, ownFrom, runId } = told;
  const name = visible(run);
  if (total === 0) throw refused(`fork.run: run "${name}" has no messages; start a new run`);
  if (at !== undefined && at > total) {
    throw refused(`fork.at: ${at} is more than the ${total} messages of run "${name}"`);
  }
  const {
    messages: taken,
    at: next,
    needs,
  } = promptBefore(said, { at: at ?? total, own: ownFrom });
  if (told.completeFrom > needs) {
    // What an archive that is down may have is not lost.
    if (faults.length > 0) throw faults[0];
    throw refused(
      `fork.run: of the messages of "${name}" before ${told.completeFrom} some are missing: ` +
        'neither the server nor the archive has them any more',
    );
  }
  const to = info.workflowExecution?.workflowId ?? '';
  const messages = await withAttachments(blobs, taken, {
    owners: () => readLineage(client, run),
    to,
  });
  const pinned = pinnedOf(messages);
  const artifacts = artifactsBefore(told.artifacts ?? [], said, next);
  return {
    chunk: { blob: await blobs.put(writeChunk(messages)), count: messages.length },
    head: messages.reduce((head, message) => chain(head, toPromptMessage(message)), FIRST_LINK),
    tokens: messages.reduce((sum, message) => sum + messageTokens(message), 0),
    next,
    from: { runId },
    ...(pinned.length > 0 && { pinned }),
    ...(artifacts.length > 0 && { artifacts }),
  };
}

/** Readers do without an archive that is down; here its errors are collected. */
function watchedArchive(archive: Archive, faults: unknown[]): Archive {
  return {
    append: (run, messages) => archive.append(run, messages),
    read: (run, range) =>
      archive.read(run, range).catch((error: unknown) => {
        faults.push(error);
        throw error;
      }),
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

/** What is attached to messages becomes this run's. Rejects with a `BlobError` for what cannot be read. */
async function withAttachments(
  blobs: BlobStore,
  messages: readonly Message[],
  { owners, to }: { readonly owners: () => Promise<readonly string[]>; readonly to: string },
): Promise<readonly Message[]> {
  const isAttached = messages.some(
    (one) => one.role === 'user' && one.attachments?.some((each) => 'blob' in each),
  );
  if (!isAttached) return messages;
  const from = await owners();
  return await Promise.all(
    messages.map(async (message) => {
      if (message.role !== 'user' || message.attachments === undefined) return message;
      const attachments = await Promise.all(
        message.attachments.map(async (each) =>
          'blob' in each ? { ...each, blob: await handOn(blobs, { from, to }, each.blob) } : each,
        ),
      );
      return { ...message, attachments };
    }),
  );
}

function asRefused(error: unknown): never {
  throw error instanceof NoRunError ? refused(`fork.run: ${error.message}`) : error;
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
