import type { Client } from '@temporalio/client';
import type { PerdureClient } from '../client/client-types.js';
import type { RunLike } from '../client/control.js';
import { partsOfClient } from '../client/create-client.js';
import { storedId } from '../client/run-ids.js';
import { assertOptionNames } from '../validation/option-names.js';
import { InputError, NoRunError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { sha256Hex } from '../core/text/json.js';
import { begunRuns } from '../history/called-runs.js';
import { readRun } from '../history/read-run.js';
import { readSegments } from '../history/segments.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import { type RunEvents, calledRuns, recordEvents } from './record-histories.js';
import {
  type RecordedRun,
  type Recording,
  blobsIn,
  createRecording,
  withKeys,
} from './recording.js';
import { redactJson, redactMessage } from '../secrets/redact.js';
import { readablePath } from '../validation/check-options.js';

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
  assertOptionNames<RecordOptions>(options, { redact: true });
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

/** A secret in a recording. */
interface FoundSecret {
  /** Such as `runs[0].facts[3].result.text`. */
  readonly path: string;
  /** What it is, without its value: a mark such as `[redacted OPENAI_API_KEY]`. */
  readonly name: string;
}

type Path = readonly (string | number)[];

/**
 * Returns the first secret in a recording, in any form: one that this process knows, or a text with
 * the form of a key. Returns null if there is none.
 */
export function findSecret(recording: Recording): FoundSecret | null {
  return findIn(recording, []);
}

function findIn(value: unknown, path: Path): FoundSecret | null {
  if (typeof value === 'string') return markIn(value, clean(value), path);
  if (typeof value !== 'object' || value === null) {
    const text = String(value);
    return markIn(text, clean(text), path);
  }
  const entries: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? value.map((one, index) => [index, one] as const)
    : Object.entries(value);
  for (const [key, one] of entries) {
    const inKey = typeof key === 'string' ? markIn(key, clean(key), path) : null;
    const found = inKey ?? findIn(one, [...path, key]);
    if (found !== null) return found;
  }
  if (path.length === 0) return null;
  // Several values may form a secret together, such as a list of bytes.
  const [before, after] = [JSON.stringify(value), JSON.stringify(redactJson(value))];
  return markIn(before, after, path);
}

function markIn(before: string, after: string, path: Path): FoundSecret | null {
  if (before === after) return null;
  const known = /\[redacted [\w.-]+\]/.exec(after)?.[0];
  return { path: readablePath(path), name: known ?? 'a text with the form of a key' };
}

function clean(text: string): string {
  return redactMessage(text);
}

/** Returns the recording with a mark in place of each secret. */
export function withoutSecretsIn(recording: Recording): Recording {
  const { blobs, ...rest } = recording;
  const renamed = new Map<string, string>();
  const safeBlobs: Record<string, string> = {};
  for (const [sha256, text] of Object.entries(blobs)) {
    const safe = clean(text);
    const name = safe === text ? sha256 : sha256Hex(safe);
    if (name !== sha256) renamed.set(sha256, name);
    safeBlobs[name] = safe;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- shapes remain but for secret bytes
  const safe = redactJson(cleaned(rest, renamed)) as typeof rest;
  return { ...safe, blobs: safeBlobs };
}

function cleaned(value: unknown, renamed: BlobNames): unknown {
  if (typeof value === 'string') return clean(renameBlobs(value, renamed));
  if (Array.isArray(value)) return value.map((one) => cleaned(one, renamed));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [clean(key), cleaned(one, renamed)]),
  );
}

/** New names of large texts, by their old ones: both are the SHA-256 of a text. */
type BlobNames = ReadonlyMap<string, string>;

/**
 * Returns a text with the new names. They also stand in texts, such as the note by which a model reads
 * on in a large result.
 */
function renameBlobs(text: string, names: BlobNames): string {
  if (names.size === 0) return text;
  return text.replace(/[0-9a-f]{64}/g, (name) => names.get(name) ?? name);
}

/** Returns a value with the new names in all of its texts. */
function renameBlobsIn<T>(value: T, names: BlobNames): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only texts within it change
  return renamedIn(value, names) as T;
}

function renamedIn(value: unknown, names: BlobNames): unknown {
  if (typeof value === 'string') return renameBlobs(value, names);
  if (Array.isArray(value)) return value.map((one) => renamedIn(one, names));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, renamedIn(one, names)]),
  );
}
