import { blobShape } from '../guards/message.js';
import { isObject } from '../json.js';
import { show } from '../text/format-value.js';
import type { BlobRef } from '../transcript/messages.js';

/**
 * A value sent with a message, which becomes an artifact of the run. The client has stored it for
 * this run.
 */
export interface AttachedArtifact {
  /** 1 to 64 characters of a–z, 0–9, `_`, and `-`. */
  readonly name: string;
  readonly blob: BlobRef;
  /** For the model: `array of 300`, `object with keys …`. */
  readonly kind: string;
  /** The value is text. */
  readonly text?: true;
  /** For the model: the beginning of the value. */
  readonly head: string;
}

export const ARTIFACT_NAME = /^[a-z0-9_-]{1,64}$/;
/** Maximum values per message. Each one is announced to the model. */
export const MAX_ARTIFACTS = 20;
const MAX_KIND_CHARACTERS = 200;
const MAX_HEAD_CHARACTERS = 500;

/** Returns what is wrong with the artifacts of a message, or null. */
export function checkArtifacts(value: unknown): string | null {
  if (value === undefined) return null;
  if (isObject(value)) {
    return 'artifacts: expected values that a client has stored, got values by name; give these to `start` or `send` of a client';
  }
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_ARTIFACTS) {
    const got = Array.isArray(value) ? `${value.length}` : show(value);
    return `artifacts: expected 1–${MAX_ARTIFACTS}, got ${got}; omit the field if there are none`;
  }
  const wrong = value.findIndex((one) => !isAttachedArtifact(one));
  if (wrong >= 0) {
    return `artifacts[${wrong}]: expected a value that the client has stored for this run, got ${show(value[wrong])}`;
  }
  const names = value.filter(isAttachedArtifact).map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? null : `artifacts: expected each name once, got "${twice}" twice`;
}

function isAttachedArtifact(value: unknown): value is AttachedArtifact {
  if (!isObject(value)) return false;
  const { name, blob, kind, text, head, ...rest } = value;
  return (
    Object.keys(rest).length === 0 &&
    typeof name === 'string' &&
    ARTIFACT_NAME.test(name) &&
    blobShape(blob, '') === null &&
    isText(kind, MAX_KIND_CHARACTERS) &&
    (text === undefined || text === true) &&
    isText(head, MAX_HEAD_CHARACTERS)
  );
}

function isText(value: unknown, characters: number): boolean {
  return typeof value === 'string' && value.length <= characters;
}
