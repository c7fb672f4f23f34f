import { sha256Hex } from '../core/text/json.js';
import { redactJson, redactMessage } from '../secrets/redact.js';
import { readablePath } from '../validation/check-options.js';
import { type BlobNames, renameBlobs } from './blob-names.js';
import type { Recording } from './recording.js';

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
