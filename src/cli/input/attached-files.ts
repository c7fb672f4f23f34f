import { readFile, stat } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import {
  MAX_ATTACHED_BYTES,
  attach,
  claimAttachments,
  storeArtifacts,
} from '../../client/attach.js';
import { InputError } from '../../core/errors.js';
import { blobsOfRun } from '../../storage/blob-store.js';
import { type AttachedArtifact, MAX_ARTIFACTS } from '../../core/input/turn-context.js';
import { visible } from '../../core/state/summaries.js';
import { parseForeignJson } from '../../core/text/json.js';
import type { Attachment } from '../../core/transcript/messages.js';
import { type CliContext, UsageError } from '../context.js';

/**
 * Resolves the values of `--attach FILE|URL`: stores files in the blob store of this home, and
 * passes the URL of an image on to the model's provider. `run`: the id of the run, or what it will begin with. Throws a `UsageError` that names the file
 * and the fix.
 */
export async function attachedFiles(
  context: CliContext,
  names: readonly string[] = [],
  run?: string,
): Promise<readonly Attachment[]> {
  const stores = await context.stores();
  const blobs = run === undefined ? stores.blobs : blobsOfRun(stores.blobs, run);
  return await Promise.all(
    names.map(async (name): Promise<Attachment> => {
      if (/^https?:\/\//i.test(name)) return { type: 'image', url: name };
      const bytes = await read(name);
      try {
        return await attach(blobs, bytes, { name: basename(name) });
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        throw attachError(name, 'expected a PNG, JPEG, GIF, WebP, or PDF file', error);
      }
    }),
  );
}

/** Binds the attachments of a message to the run that receives it. */
export async function ownAttachments(
  context: CliContext,
  run: string,
  message: { readonly attachments?: readonly Attachment[] },
): Promise<{ readonly attachments?: readonly Attachment[] }> {
  return await claimAttachments((await context.stores()).blobs, run, message);
}

/** Reads a file. Checks the size first, to avoid reading a file that no provider accepts. */
async function read(name: string): Promise<Uint8Array> {
  const found = await stat(name).catch((error: unknown) => {
    throw attachError(name, reasonFor(error), error);
  });
  if (!found.isFile()) throw attachError(name, 'expected a file, got a folder or a device');
  if (found.size === 0) throw attachError(name, 'expected a file with content, got an empty one');
  if (found.size > MAX_ATTACHED_BYTES) {
    const limit = MAX_ATTACHED_BYTES / 1024 ** 2;
    throw attachError(
      name,
      `expected at most ${limit} MiB, got ${found.size} bytes; no provider accepts more`,
    );
  }
  return await readFile(name).catch((error: unknown) => {
    throw attachError(name, reasonFor(error), error);
  });
}

/** Returns why a file cannot be read. */
function reasonFor(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  if (code === 'ENOENT') return 'there is no such file';
  return error instanceof Error ? error.message : String(error);
}

function attachError(name: string, problem: string, cause?: unknown): UsageError {
  return new UsageError(`--attach ${visible(name)}: ${problem}`, { cause });
}

/** The values of `--artifact NAME=FILE`, by name. */
export type ArtifactFiles = Readonly<Record<string, unknown>>;

/**
 * Reads the files of `--artifact NAME=FILE`: as JSON if the name of the file ends in `.json`, else
 * as text. Throws a `UsageError`.
 */
export async function artifactFiles(given: readonly string[] = []): Promise<ArtifactFiles> {
  if (given.length > MAX_ARTIFACTS) {
    throw new UsageError(
      `--artifact: expected at most ${MAX_ARTIFACTS}, got ${given.length}; send the others with later messages`,
    );
  }
  const entries = given.map(async (argument): Promise<[string, unknown]> => {
    const at = argument.indexOf('=');
    if (at < 1 || at === argument.length - 1) {
      throw new UsageError(
        `--artifact ${visible(argument)}: expected NAME=FILE, such as orders=orders.json`,
      );
    }
    return [argument.slice(0, at), await readValue(argument.slice(at + 1))];
  });
  const values = await Promise.all(entries);
  const names = values.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return Object.fromEntries(values);
  throw new UsageError(
    `--artifact ${visible(twice)}: expected each name once, got it twice; give each file its own name`,
  );
}

/** Stores the artifacts of a message for the run that receives it. */
export async function ownArtifacts(
  context: CliContext,
  run: string,
  artifacts: ArtifactFiles,
): Promise<{ readonly artifacts?: readonly AttachedArtifact[] }> {
  if (Object.keys(artifacts).length === 0) return {};
  const { blobs } = await context.stores();
  return await storeArtifacts(blobs, run, { artifacts }).catch((error: unknown) => {
    if (!(error instanceof InputError)) throw error;
    throw new UsageError(error.message.replace(/^artifacts/, '--artifact'), { cause: error });
  });
}

async function readValue(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new UsageError(`--artifact ${visible(file)}: ${reasonFor(error)}`, { cause: error });
  });
  if (extname(file) !== '.json') return text;
  const parsed = parseForeignJson(text);
  if (parsed.ok) return parsed.value;
  throw new UsageError(`--artifact ${visible(file)}: expected JSON: ${parsed.problem}`);
}
