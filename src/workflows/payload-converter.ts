import { defaultPayloadConverter, type Payload, type PayloadConverter } from '@temporalio/common';
import { unreadable } from '../core/input/input.js';

/** The payloads of unreadable values. A memo that is passed on keeps them unchanged. */
const unread = new WeakMap<object, Payload>();

/**
 * Temporal's default converter, except that an unreadable payload becomes a value with the error.
 * An exception would make the workflow task retry indefinitely; the value fails the run with a
 * clear message. Another worker may have the key of an encrypted payload, so its task fails until then.
 */
export const payloadConverter: PayloadConverter = {
  toPayload(value) {
    const payload = typeof value === 'object' && value !== null ? unread.get(value) : undefined;
    return payload ?? defaultPayloadConverter.toPayload(value);
  },
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as the SDK declares it
  fromPayload<T>(payload: Payload): T {
    try {
      return defaultPayloadConverter.fromPayload(payload);
    } catch (error) {
      const key = encryptedWith(payload);
      if (key !== null) throw missingKey(key);
      const value = unreadable(error instanceof Error ? error.message : String(error));
      unread.set(value, payload);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the input is checked later
      return value as T;
    }
  },
};

/** Returns the id of the key of an encrypted payload, which may be empty; null for any other payload. */
function encryptedWith({ metadata }: Payload): string | null {
  const isEncrypted = textOf(metadata?.['encoding']) === 'binary/encrypted';
  return isEncrypted ? textOf(metadata?.['encryption-key-id']) : null;
}

function missingKey(id: string): Error {
  return new Error(
    `a payload is encrypted with key "${id}", and this worker has no keys; give it the key in PERDURE_ENCRYPTION_KEYS, ` +
      'or in `encryption` of its configuration',
  );
}

function textOf(bytes: Uint8Array | null | undefined): string {
  return String.fromCharCode(...(bytes ?? []));
}
