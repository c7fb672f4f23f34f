import { wellFormed } from '../core/text/whole-text.js';
import { InputError } from '../core/errors.js';
import { ARTIFACT_NAME, type AttachedArtifact } from '../core/input/attached-artifacts.js';
import { describeValue } from '../core/artifacts/describe-value.js';
import { jsonText, show } from '../core/text/format-value.js';
import { isObject, type Json } from '../core/json.js';
import type { BlobStore } from '../storage/blob-store.js';
import { ownedText } from '../storage/owned-text.js';

/** Values by their names as artifacts of a run. */
export interface ArtifactsField {
  /**
   * Values that become artifacts of the run with the message, by name: 1 to 64 of a–z, 0–9, `_`,
   * and `-`. A value is JSON or a string. It is stored whole; the model reads its name, its shape,
   * and its start.
   */
  readonly artifacts?: Readonly<Record<string, unknown>>;
}

/** The maximum size of a value; larger values belong in files that a tool opens. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Characters of the description and of the beginning that the run accepts. */
const MAX_KIND = 200;
const MAX_HEAD = 500;

/**
 * Stores the artifacts of a message for its run. Rejects with an `InputError` that names the
 * artifact if a name is invalid or a value cannot be stored, and with a `BlobError`.
 */
export async function storeArtifacts(
  blobs: BlobStore,
  run: string,
  { artifacts }: { readonly artifacts: ArtifactsField['artifacts'] | undefined },
): Promise<{ readonly artifacts?: readonly AttachedArtifact[] }> {
  if (artifacts === undefined) return {};
  if (!isObject(artifacts)) {
    throw new InputError(
      `artifacts: expected values by name, got ${show(artifacts)}; give for example { orders: [...] }`,
    );
  }
  const stored = Object.entries(artifacts).map(([name, value]) =>
    storeArtifact(blobs, run, { name, value }),
  );
  return { artifacts: await Promise.all(stored) };
}

async function storeArtifact(
  blobs: BlobStore,
  run: string,
  { name, value }: { readonly name: string; readonly value: unknown },
): Promise<AttachedArtifact> {
  if (!ARTIFACT_NAME.test(name)) {
    throw new InputError(
      `artifacts: expected names of 1 to 64 of a–z, 0–9, "_", and "-", got ${show(name)}`,
    );
  }
  const at = `artifacts.${name}`;
  const isText = typeof value === 'string';
  const json = isText ? value : jsonText(value);
  if (json === undefined || !(isText || isJson(value))) {
    throw new InputError(
      `${at}: expected a text or JSON, got ${show(value)}; convert what JSON does not have, such as dates, maps, and undefined`,
    );
  }
  const content = wellFormed(json);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked above
  const kind = wellFormed(describeValue(value as Json).slice(0, MAX_KIND));
  const head = wellFormed(content.slice(0, MAX_HEAD));
  const bytes = Buffer.byteLength(content);
  if (bytes > MAX_BYTES) {
    throw new InputError(
      `${at}: expected at most ${MAX_BYTES} bytes, got ${bytes}; write it to a file, and name the file`,
    );
  }
  const blob = await blobs.put(ownedText('artifact', run, content));
  return { name, blob, kind, head, ...(isText && { text: true as const }) };
}

/** Whether JSON represents a serializable value completely. */
function isJson(value: unknown): boolean {
  if (Array.isArray(value)) return Array.from(value).every(isJson);
  if (typeof value === 'number') return Number.isFinite(value);
  if (!isObject(value)) return ['string', 'boolean'].includes(typeof value) || value === null;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    (prototype === null || prototype === Object.prototype) && Object.values(value).every(isJson)
  );
}
