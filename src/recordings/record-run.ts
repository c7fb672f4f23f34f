import type { Client } from '@temporalio/client';
import type { PerdureClient } from '../client/client-types.js';
import type { RunLike } from '../client/control.js';
import { partsOfClient } from '../client/create-client.js';
import { storedId } from '../client/run-ids.js';
import { InputError, NoRunError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { sha256Hex } from '../core/text/json.js';
import { begunRuns } from '../history/called-runs.js';
import { readRun } from '../history/read-run.js';
import { readSegments } from '../history/segments.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import { type BlobNames, renameBlobsIn } from './blob-names.js';
import { type RunEvents, calledRuns, recordEvents } from './record-histories.js';
import {
  type RecordedRun,
  type Recording,
  blobsIn,
  createRecording,
  withKeys,
} from './recording.js';
import { findSecret, withoutSecretsIn } from './secrets.js';

/** Options of `recordRun`. */
export interface RecordOptions {
  /** Replaces secrets by marks such as `[redacted OPENAI_API_KEY]`. Default: a secret is an error. */
  readonly redact?: boolean;
}

/** Where the histories and the large texts of runs are. */
interface RecordSources {
  readonly client: Client;
  readonly archive: Archive;
  readonly blobs: BlobStore;
}

/**
 * Records a run that has happened, also one that is open, or that only the archive still has: a pure
 * function of its histories and of those of the agents that it has called. Nothing has to be prepared
 * before. Rejects with a `NoRunError` for an unknown run, with an `UnreadableError` for one that a newer
 * version of perdure wrote, and with an `InputError` if a part of the run, or of one that it has called,
 * is lost, or if the recording would contain a secret that this process knows or a text with the form of
 * a key; the message names its place.
 *
 * @example
 * ```ts
 * import { createClient } from 'perdure/client';
 * import { recordRun } from 'perdure/testing';
 *
 * const client = await createClient();
 * const recording = await recordRun(client, 'desk-17');
 * console.log(recording.runs[0]?.facts.length);
 * ```
 */
export async function recordRun(
  client: PerdureClient,
  run: RunLike<unknown>,
  options: RecordOptions = {},
): Promise<Recording> {
  const { keyring, ...sources } = partsOfClient(client);
  const id = await storedId(sources.client, run, sources.archive);
  const recording = await recordFrom(sources, id, options);
  return withKeys(recording, keyring && keyring.with(keyring.keyFor(id)));
}

/** Like `recordRun`, for a program that has the client and the stores themselves. */
export async function recordFrom(
  sources: RecordSources,
  id: string,
  { redact = false }: RecordOptions = {},
): Promise<Recording> {
  const runs: RecordedRun[] = [];
  const begun = new Set<string>();
  const waiting = [id];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    if (runs.some((run) => run.id === next)) continue;
    const isRoot = runs.length === 0;
    const read = await readOne(sources, { id: next, isRoot, hasBegun: begun.has(next) });
    const run = read && recordEvents(read);
    if (read === null || run === null) {
      if (isRoot) throw notBegun(id);
      continue;
    }
    runs.push(run);
    for (const child of begunRuns(read.segments).keys()) begun.add(child);
    waiting.push(...calledRuns(run));
  }
  const { blobs, names } = await readBlobs(sources.blobs, runs);
  const recording = createRecording(renameBlobsIn(runs, names), blobs);
  if (redact) return withoutSecretsIn(recording);
  const secret = findSecret(recording);
  if (secret === null) return recording;
  throw new InputError(
    `${secret.path}: expected no secret, got ${secret.name}; replace it with --redact ({ redact: true })`,
  );
}

function notBegun(id: string): InputError {
  return new InputError(
    `run: expected a run that a worker has begun, got "${visible(id)}", which has not started`,
  );
}

/** Reads the events of one run; null for a run that was to be called, and of which nothing exists. */
async function readOne(
  { client, archive }: RecordSources,
  {
    id,
    isRoot,
    hasBegun,
  }: { readonly id: string; readonly isRoot: boolean; readonly hasBegun: boolean },
): Promise<RunEvents | null> {
  const reading = await readRun(client, id, { archive }).catch((error: unknown) => {
    if (isRoot || !NoRunError.isInstance(error)) throw error;
    return null;
  });
  if (reading === null && hasBegun) {
    throw new InputError(
      `run: expected all runs that it has called, got none for "${visible(id)}": ${DELETED}`,
    );
  }
  if (reading === null) return null;
  const { segments, lost } = await readSegments({ client, archive }, reading);
  if (lost === null) return { id, segments };
  throw new InputError(
    `run: expected all segments of "${visible(id)}", got none for ${lost}: ${DELETED}`,
  );
}

const DELETED = 'the server has deleted it, and the archive does not have it';

/**
 * Reads every text to which the runs refer. A reference names what is stored, which may be encrypted;
 * a recording has the text, under the name of the text.
 */
async function readBlobs(
  store: BlobStore,
  runs: readonly RecordedRun[],
): Promise<{ readonly blobs: Readonly<Record<string, string>>; readonly names: BlobNames }> {
  const stored = [...blobsIn(runs).keys()].toSorted();
  const texts = await Promise.all(
    stored.map(async (sha256) => {
      try {
        const text = await store.get({ sha256 });
        return { sha256, text, name: sha256Hex(text) };
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new InputError(
          `blobs: expected the text ${sha256.slice(0, 12)}…, got an error (${reason})`,
          {
            cause: error,
          },
        );
      }
    }),
  );
  const renamed = texts.filter(({ sha256, name }) => sha256 !== name);
  return {
    blobs: Object.fromEntries(texts.map(({ name, text }) => [name, text])),
    names: new Map(renamed.map(({ sha256, name }) => [sha256, name])),
  };
}
