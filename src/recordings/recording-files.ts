import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { InputError, UnreadableError } from '../core/errors.js';
import { withProgram } from '../core/requests/commands.js';
import { visible } from '../core/state/summaries.js';
import { isObject, sha256Hex } from '../core/text/json.js';
import { fields, hex, list, text } from '../core/text/shape.js';
import { show } from '../core/text/text.js';
import {
  type EncryptionOptions,
  type Keyring,
  keyringFrom,
  noKeyFor,
} from '../encryption/keyring.js';
import { sealedBlobs } from '../encryption/sealed-stores.js';
import { BlobError, type BlobStore } from '../storage/blob-store.js';
import { assertOptionNames } from '../validation/option-names.js';
import { RESTORE, formError, header, parseRecording } from './parse-recording.js';
import { type Recording, keysOf, withKeys } from './recording.js';

/** Options of `writeRecording`. */
export interface WriteRecordingOptions {
  /**
   * Whether the recording is written in clear, although there are keys. Default: false, so it is encrypted
   * if there are any.
   */
  readonly clear?: boolean;
  /**
   * The id of the key that encrypts, such as one that your tests have and your workers do not need.
   * Default: the key that encrypts the run.
   */
  readonly key?: string;
  /**
   * The keys; default: those of the client that recorded the run, or with which the recording was read,
   * else those of PERDURE_ENCRYPTION_KEYS.
   */
  readonly encryption?: EncryptionOptions;
}

/** Options of `readRecording`. */
export interface ReadRecordingOptions {
  /** The keys of an encrypted recording; default: those of PERDURE_ENCRYPTION_KEYS. */
  readonly encryption?: EncryptionOptions;
}

/** An encrypted recording, as its file has it. */
interface SealedRecording extends Pick<Recording, 'format' | 'version'> {
  /** The id of the key. */
  readonly key: string;
  /** What the file has in clear, encrypted, in base64. */
  readonly sealed: string;
}

const sealedShape = fields<Omit<SealedRecording, 'format' | 'version'>>({
  key: text,
  sealed: text,
});

/** The folder with the large texts of a recording, beside its file. */
function blobFolder(file: string): string {
  return `${file.replace(/\.json$/, '')}.blobs`;
}

/**
 * Writes a recording to a file, and its large texts to a folder beside it, such as `case.blobs` for
 * `case.json`. Both are encrypted if there are keys, unless `clear` is true; the same recording and key
 * give the same files. Large texts of an earlier recording in that folder are removed. Rejects with an
 * `InputError` that names the first wrong field or the unknown key.
 *
 * @example
 * ```ts
 * import { createClient } from 'perdure/client';
 * import { recordRun, writeRecording } from 'perdure/testing';
 *
 * const client = await createClient();
 * await writeRecording('test/cases/desk-17.json', await recordRun(client, 'desk-17'));
 * ```
 */
export async function writeRecording(
  file: string,
  recording: Recording,
  options: WriteRecordingOptions = {},
): Promise<void> {
  const names = { clear: true, key: true, encryption: true } as const;
  assertOptionNames<WriteRecordingOptions>(options, names);
  const { clear = false, key, encryption } = options;
  const known = encryption === undefined ? keysOf(recording) : null;
  const keyring = clear ? null : (known ?? keyringFrom(encryption, process.env));
  const own = keyring?.keyFor(recording.runs[0]?.id);
  await writeFiles(file, recording, withKey(keyring, key ?? own));
}

/** Returns the keys of which the one with this id encrypts. Throws an `InputError` if there is none. */
export function withKey(keyring: Keyring | null, key: string | undefined): Keyring | null {
  if (key === undefined) return keyring;
  if (keyring !== null) return keyring.with(key);
  throw new InputError(
    `key: expected no key for a recording in clear, got ${show(key)}; give the keys, and not \`clear\``,
  );
}

/** Writes a recording, encrypted if there are keys. Rejects as `writeRecording` does. */
export async function writeFiles(
  file: string,
  recording: Recording,
  keyring: Keyring | null,
): Promise<void> {
  const { blobs, ...rest } = parseRecording(recording);
  const texts = Object.keys(blobs).toSorted();
  const folder = blobFolder(file);
  const store = textStore(file, keyring);
  await mkdir(dirname(file), { recursive: true });
  if (texts.length > 0) await mkdir(folder, { recursive: true });
  const names: string[] = [];
  for (const sha256 of texts) names.push((await store.put(blobs[sha256] ?? '')).sha256);
  await writeFile(file, `${recordingText({ ...rest, blobs: names }, keyring)}\n`);
  for (const name of await readdir(folder).catch(() => [])) {
    const isTheirs = /^[0-9a-f]{64}$/.test(name) && !names.includes(name);
    if (isTheirs) await rm(join(folder, name), { force: true });
  }
}

/** Returns a recording as a text, encrypted if there are keys. */
export function recordingText(
  value: Pick<Recording, 'format' | 'version'> & { readonly blobs: unknown },
  keyring: Keyring | null,
): string {
  const plain = JSON.stringify(value, null, 2);
  if (keyring === null) return plain;
  const { format, version } = value;
  const sealed = keyring.seal('recording', Buffer.from(plain)).toString('base64');
  const file: SealedRecording = { format, version, key: keyring.current, sealed };
  return JSON.stringify(file, null, 2);
}

/**
 * Reads a recording that `writeRecording` or `perdure record` has written, in clear or encrypted. Rejects
 * with an `InputError` that names the file and the first wrong field, and with an `UnreadableError` that
 * names the key of an encrypted recording if it is not here.
 *
 * @example
 * ```ts
 * import { readRecording } from 'perdure/testing';
 *
 * const recording = await readRecording('test/cases/desk-17.json');
 * console.log(recording.runs[0]?.agent);
 * ```
 */
export async function readRecording(
  file: string,
  options: ReadRecordingOptions = {},
): Promise<Recording> {
  assertOptionNames<ReadRecordingOptions>(options, { encryption: true });
  const { encryption } = options;
  return await readFiles(file, () => keyringFrom(encryption, process.env)).catch(
    (error: unknown) => {
      if (!InputError.isInstance(error)) throw error;
      throw new InputError(withProgram(error.message), { cause: error });
    },
  );
}

/** Returns what to do with a folder. */
function oneFile(folder: string): string {
  const name = visible(folder);
  const word = /^[\w./@:=-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`;
  return `name the file of a recording; to try a model with all recordings of a folder, use \`perdure eval ${word} --model NAME\``;
}

/** Like `readRecording`, for a program that has the keys. `keys` is called for an encrypted recording only. */
export async function readFiles(file: string, keys: () => Keyring | null): Promise<Recording> {
  const name = visible(file);
  const fixes = { missing: NAME_OR_RECORD, folder: oneFile(file) };
  const value = jsonIn(await readText(file, `${name}: expected a recording`, fixes), name);
  return await named(name, async () => {
    if (value['sealed'] === undefined) return await fromValue(value, { file, keyring: null });
    const problem = header(value, 'recording') ?? sealedShape(value, 'recording');
    if (problem !== null) throw formError(problem, value, file);
    const keyring = keys();
    const { key, plain } = opened(value, keyring);
    const recording = await fromValue(jsonIn(plain, name), { file, keyring });
    return withKeys(recording, keyring && keyring.with(key));
  });
}

function opened(
  value: Readonly<Record<string, unknown>>,
  keyring: Keyring | null,
): { readonly key: string; readonly plain: string } {
  const [key, sealed] = [String(value['key']), Buffer.from(String(value['sealed']), 'base64')];
  try {
    if (keyring === null) throw new UnreadableError(noKeyFor(key));
    return { key, plain: keyring.open('recording', key, sealed).toString('utf8') };
  } catch (error) {
    if (!UnreadableError.isInstance(error)) throw error;
    throw new UnreadableError(`the recording cannot be read: ${error.message}`, { cause: error });
  }
}

/** Returns the recording that a file has in clear, with the large texts beside it. */
async function fromValue(
  value: Readonly<Record<string, unknown>>,
  { file, keyring }: { readonly file: string; readonly keyring: Keyring | null },
): Promise<Recording> {
  if (isObject(value['blobs'])) return parseRecording(value, file);
  const problem = fields<{ readonly blobs: readonly string[] }>({ blobs: list(hex(64)) });
  const wrong = header(value, 'recording') ?? problem(value, 'recording');
  if (wrong !== null) throw formError(wrong, value, file);
  const names = Array.isArray(value['blobs']) ? value['blobs'] : [];
  const store = textStore(file, keyring);
  const blobs = await Promise.all(
    names.map(async (sha256): Promise<readonly [string, string]> => {
      const content = await store.get({ sha256: String(sha256) }).catch(asUnreadable);
      return [sha256Hex(content), content];
    }),
  );
  return parseRecording({ ...value, blobs: Object.fromEntries(blobs) }, file);
}

function asUnreadable(error: unknown): never {
  if (!BlobError.isInstance(error)) throw error;
  throw new UnreadableError(error.message, { cause: error });
}

/** Returns the folder with the large texts of a recording; encrypted ones have the names of what is stored. */
function textStore(file: string, keyring: Keyring | null): BlobStore {
  const store: BlobStore = {
    async put(content) {
      const sha256 = sha256Hex(content);
      await writeFile(join(blobFolder(file), sha256), content);
      return { sha256, bytes: Buffer.byteLength(content) };
    },
    async get({ sha256 }) {
      const path = join(blobFolder(file), sha256);
      const content = await readText(path, `blobs: expected the text in ${visible(path)}`);
      if (sha256Hex(content) === sha256) return content;
      throw new InputError(
        `blobs: expected the recorded text in ${visible(path)}, got another one; ${RESTORE}`,
      );
    },
  };
  return keyring === null ? store : sealedBlobs(store, keyring);
}

/** Returns the object that is written in a file. */
function jsonIn(content: string, name: string): Record<string, unknown> {
  const expected = `${name}: expected JSON as \`record\` writes it`;
  let value: unknown;
  try {
    // Some editors write a byte order mark.
    value = JSON.parse(content.replace(/^\uFEFF/, ''));
  } catch (error) {
    const reason = visible(error instanceof Error ? error.message : String(error));
    throw new InputError(`${expected}, got other text (${reason}); record the run again`, {
      cause: error,
    });
  }
  if (isObject(value)) return value;
  throw new InputError(`${expected}, got ${show(value)}; record the run again`);
}

/** Adds the name of a file to an `InputError` or an `UnreadableError`. */
async function named<T>(name: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (UnreadableError.isInstance(error)) {
      throw new UnreadableError(`${name}: ${error.message}`, { cause: error });
    }
    if (!InputError.isInstance(error) || error.message.startsWith(`${name}: `)) throw error;
    throw new InputError(`${name}: ${error.message}`, { cause: error });
  }
}

/** What to do about a recording that is not there. */
const NAME_OR_RECORD = 'correct the name, or record a run with: perdure record RUN --out FILE';

/** `fixes`: what to do about a missing file and about a folder. */
async function readText(
  file: string,
  expected: string,
  fixes = { missing: RESTORE, folder: RESTORE },
): Promise<string> {
  try {
    // Reading a pipe or a device might never end.
    if ((await stat(file)).isFile()) return await readFile(file, 'utf8');
  } catch (error) {
    const isMissing = isObject(error) && error['code'] === 'ENOENT';
    const reason = error instanceof Error ? error.message : String(error);
    const got = isMissing
      ? `no such file; ${fixes.missing}`
      : `an error (${visible(reason)}); ${RESTORE}`;
    throw new InputError(`${expected}, got ${got}`, { cause: error });
  }
  throw new InputError(`${expected}, got a folder, a pipe, or a device; ${fixes.folder}`);
}
