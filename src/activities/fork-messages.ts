import { setTimeout as pause } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { ApplicationFailure } from '@temporalio/common';
import { NoRunError } from '../core/errors.js';
import type { ForkMessagesResult } from '../core/run/contract.js';
import {
  type ForkMessagesInput,
  artifactsBefore,
  notesOfUndone,
  promptBefore,
} from '../core/state/fork.js';
import { visible } from '../core/state/summaries.js';
import {
  type Message,
  type RunArtifact,
  latestTexts,
  saidTexts,
} from '../core/transcript/messages.js';
import {
  FIRST_LINK,
  chain,
  messageTokens,
  toPromptMessage,
} from '../core/transcript/transcript.js';
import { readLineage, readRun } from '../history/read-run.js';
import { readTranscript, readVisit } from '../history/run-transcript.js';
import { type Archive, BlobError, type BlobStore } from '../storage/blob-store.js';
import { copyToRun } from '../storage/owned-text.js';
import {
  type FitOptions,
  type FittedText,
  cutText,
  fitText,
  keptBytes,
} from '../tools/result/normalize.js';
import type { ActivityDependencies } from './activity-context.js';
import { refusedFailure } from './attempt.js';
import { formatChunk } from './model/transcript-cache.js';
import { withStorageMapping } from './storage-faults.js';

/** The limit for pinned messages, which are recorded in the history; the others are offloaded. */
const PINNED_BYTES = 128 * 1024;

/**
 * Stores another run's prompt before message `at` as part of this run's prompt, and its attachments
 * as this run's own. Throws `ForkRefused` if the run or the message does not exist, if messages are
 * no longer available, or if `forkFrom` does not name the other run's agent.
 */
export async function forkMessages(
  deps: Pick<ActivityDependencies, 'archive' | 'blobs'>,
  input: ForkMessagesInput,
): Promise<ForkMessagesResult> {
  return await withStorageMapping(input, () => copyMessages(deps, input));
}

async function copyMessages(
  { archive, blobs }: Pick<ActivityDependencies, 'archive' | 'blobs'>,
  { run, runId: firstRunId, at: place, agent, forkFrom = [], latest = 0 }: ForkMessagesInput,
): Promise<ForkMessagesResult> {
  const { client, info } = Context.current();
  const source = await readRun(client, run, { archive, firstRunId }).catch(throwRefused);
  const { agent: owner } = source;
  if (owner !== agent && !forkFrom.includes(owner)) {
    throw refused(
      `fork.run: run "${visible(run)}" belongs to agent "${visible(owner)}", whose messages agent ` +
        `"${agent}" may not read; name it in the option forkFrom of "${agent}" to allow that`,
    );
  }
  const faults: unknown[] = [];
  const watched = watchArchive(archive, faults);
  const visit =
    typeof place === 'object'
      ? await readVisit(client, source, { ...place, archive: watched })
      : null;
  if (visit !== null && 'problem' in visit) {
    if (faults.length > 0) throw faults[0];
    throw refused(visit.problem);
  }
  const at = typeof place === 'object' ? visit?.at : place;
  const transcript = await readTranscript(client, source, { archive: watched });
  const { messages: all, total, ownFrom, runId } = transcript;
  const name = visible(run);
  if (total === 0 && visit === null)
    throw refused(`fork.run: run "${name}" has no messages; start a new run`);
  if (at !== undefined && at > total) {
    throw refused(`fork.at: expected at most ${total}, the messages of run "${name}", got ${at}`);
  }
  const { messages: taken, at: next, needs } = promptBefore(all, { at: at ?? total, own: ownFrom });
  if (transcript.completeFrom > needs) {
    // An archive that is down may still have the messages.
    if (faults.length > 0) throw faults[0];
    throw refused(
      `fork.run: some messages of "${name}" before ${transcript.completeFrom} are missing: ` +
        'neither the server nor the archive still has them',
    );
  }
  const to = info.workflowExecution?.workflowId ?? '';
  const copying = { owners: () => readLineage(client, run, archive), to };
  const known = visit?.artifacts ?? transcript.artifacts ?? [];
  const before = artifactsBefore(known, all, next);
  const artifacts = await takeArtifacts(blobs, before, copying);
  const attached = await takeAttachments(blobs, taken, copying);
  const messages = announceAgain(attached, { before, artifacts });
  const pinned = selectPinned(messages);
  const notes = notesOfUndone(all, next, source.view.state?.notes ?? []);
  return {
    chunk: { blob: await blobs.put(formatChunk(messages)), count: messages.length },
    head: messages.reduce((head, message) => chain(head, toPromptMessage(message)), FIRST_LINK),
    tokens: messages.reduce((sum, message) => sum + messageTokens(message), 0),
    next,
    from: { runId },
    ...(pinned.length > 0 && { pinned }),
    ...(latest > 0 && { latest: latestTexts(saidTexts(messages), latest) }),
    ...(artifacts.length > 0 && { artifacts }),
    ...(notes.length > 0 && { notes }),
    ...(visit && { graph: visit.graph }),
  };
}

/** Wraps an archive to collect the errors that `readTranscript` ignores. */
function watchArchive(archive: Archive, faults: unknown[]): Archive {
  const note = (error: unknown): never => {
    faults.push(error);
    throw error;
  };
  return {
    write: (run, history, json) => archive.write(run, history, json),
    list: (run) => archive.list(run).catch(note),
    read: (run, history) => archive.read(run, history).catch(note),
  };
}

/** Returns the pinned messages, up to `PINNED_BYTES`. */
function selectPinned(messages: readonly Message[]): readonly Message[] {
  let bytes = 0;
  return messages.filter((message) => {
    if (message.role !== 'user' || message.pinned !== true) return false;
    bytes += Buffer.byteLength(JSON.stringify(message));
    return bytes <= PINNED_BYTES;
  });
}

/** The run that copies, and those whose texts it may copy. */
interface Copying {
  readonly owners: () => Promise<readonly string[]>;
  readonly to: string;
}

/** Copies the artifacts of messages to this run. Rejects with a `BlobError`. */
async function takeArtifacts(
  blobs: BlobStore,
  artifacts: readonly RunArtifact[],
  { owners, to }: Copying,
): Promise<readonly RunArtifact[]> {
  if (artifacts.every(({ announcedBy }) => announcedBy === undefined)) return artifacts;
  const copy = { kind: 'artifact', from: await owners(), to } as const;
  return await Promise.all(
    artifacts.map(async (one) =>
      one.announcedBy === undefined
        ? one
        : { ...one, blob: await copyToRun(blobs, copy, one.blob) },
    ),
  );
}

/**
 * Returns the messages with this run's references where the engine announced an artifact to the
 * model.
 */
function announceAgain(
  messages: readonly Message[],
  {
    before,
    artifacts,
  }: { readonly before: readonly RunArtifact[]; readonly artifacts: readonly RunArtifact[] },
): readonly Message[] {
  const references = before.flatMap(({ blob: { sha256: old } }, index) => {
    const own = artifacts[index]?.blob.sha256 ?? old;
    return own === old ? [] : [[old, own] as const];
  });
  return messages.map((message) => {
    if (message.role !== 'user' || message.origin !== 'perdure') return message;
    const renamed = references.reduce(
      (text, [old, own]) => text.replaceAll(old, own),
      message.text,
    );
    return { ...message, text: renamed };
  });
}

/**
 * Attaches the messages' attachments to this run. Rejects with a `BlobError` if one cannot be read.
 */
async function takeAttachments(
  blobs: BlobStore,
  messages: readonly Message[],
  { owners, to }: Copying,
): Promise<readonly Message[]> {
  const isAttached = messages.some(
    (message) => message.role === 'user' && message.attachments?.some((each) => 'blob' in each),
  );
  if (!isAttached) return messages;
  const copy = { kind: 'attachment', from: await owners(), to } as const;
  return await Promise.all(
    messages.map(async (message) => {
      if (message.role !== 'user' || message.attachments === undefined) return message;
      const attachments = await Promise.all(
        message.attachments.map(async (each) =>
          'blob' in each ? { ...each, blob: await copyToRun(blobs, copy, each.blob) } : each,
        ),
      );
      return { ...message, attachments };
    }),
  );
}

function throwRefused(error: unknown): never {
  throw error instanceof NoRunError ? refused(`fork.run: ${error.message}`) : error;
}

function refused(message: string): ApplicationFailure {
  return refusedFailure(message, 'ForkRefused');
}

/** Waits in ms before each further attempt to write. */
const RETRY_MS = [100, 500, 1_500];

/**
 * Returns a text that fits the history, and offloads the whole text to the blob store if it is too
 * large. The text has been paid for, or reports a side effect, so a store that stays down never
 * causes the work to be repeated. In that case, it returns the head and the tail, with a note on
 * what is lost and why.
 */
export async function offloadText(
  text: string,
  store: BlobStore,
  options: FitOptions = {},
): Promise<FittedText> {
  const stored = await retryStore(() => fitText(text, store, options));
  if ('value' in stored) return stored.value;
  const keepBytes = keptBytes(options.maxBytes ?? Infinity);
  return { text: cutText(text, { lost: stored.fault, keepBytes }), lost: stored.fault };
}

/**
 * Repeats work that fails with a `BlobError` up to three times, over about two seconds. Returns its
 * value, or the message of the last error. Throws any other error at once.
 */
export async function retryStore<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T } | { readonly fault: string }> {
  let fault = '';
  for (const waitMs of [0, ...RETRY_MS]) {
    if (waitMs > 0) await pause(waitMs);
    try {
      return { value: await work() };
    } catch (error) {
      if (!(error instanceof BlobError)) throw error;
      fault = error.message;
    }
  }
  return { fault };
}
