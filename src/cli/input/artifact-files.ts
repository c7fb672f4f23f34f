import { parseForeignJson } from '../../core/foreign-json.js';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { openStores } from '../../storage/file-stores.js';
import { storeArtifacts } from '../../client/store-artifacts.js';
import { InputError } from '../../core/errors.js';
import { MAX_ARTIFACTS, type AttachedArtifact } from '../../core/input/attached-artifacts.js';
import { visible } from '../../core/text/summaries.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../exit-codes.js';
import { reasonFor } from './attached-files.js';

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
  { home, env }: CliContext,
  run: string,
  artifacts: ArtifactFiles,
): Promise<{ readonly artifacts?: readonly AttachedArtifact[] }> {
  if (Object.keys(artifacts).length === 0) return {};
  return await storeArtifacts(openStores(home, env).blobs, run, { artifacts }).catch(
    (error: unknown) => {
      if (!(error instanceof InputError)) throw error;
      throw new UsageError(error.message.replace(/^artifacts/, '--artifact'), { cause: error });
    },
  );
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
