import { BlobError, type BlobStore, type RunBlobs } from '../storage/blob-store.js';
import { CLEAR_FIX, type Keyring, noKeyFor } from './keyring.js';

/** The beginning of an encrypted text in a blob store, followed by the id of the key and base64. */
const ENCRYPTED = 'perdure encrypted ';
/** The beginning of a text in clear that would otherwise begin like one of these. */
const CLEAR = 'perdure clear\n';

/**
 * Returns a blob store that encrypts what it stores if there are keys: with the key of the run in `of`. It also reads plain texts,
 * unless encryption is required. References name the encrypted text, so a reader without the keys
 * cannot test whether the store has a known text. Rejects with a `BlobError` for a text whose key is not here.
 */
export function sealedBlobs(store: BlobStore, keyring: Keyring | null): RunBlobs {
  return sealedFor(store, keyring);
}

/** `run`: to which run the texts belong; absent: to none. */
function sealedFor(store: BlobStore, keyring: Keyring | null, run?: string): RunBlobs {
  return {
    of: (id) => sealedFor(store, keyring, id),
    async put(text) {
      const { sha256, bytes } = await store.put(toStored(text, keyring, run));
      return { sha256, bytes: keyring === null ? bytes : Buffer.byteLength(text) };
    },
    async get(ref) {
      const stored = await store.get(ref);
      if (keyring?.required === true && !stored.startsWith(ENCRYPTED)) {
        throw unreadable(ref.sha256, inClear());
      }
      if (stored.startsWith(CLEAR)) return stored.slice(CLEAR.length);
      if (!stored.startsWith(ENCRYPTED)) return stored;
      const end = stored.indexOf('\n');
      const id = stored.slice(ENCRYPTED.length, end);
      if (keyring === null) throw unreadable(ref.sha256, new Error(noKeyFor(id)));
      try {
        return keyring.open('blob', id, Buffer.from(stored.slice(end + 1), 'base64')).toString();
      } catch (error) {
        throw unreadable(ref.sha256, error);
      }
    },
    ...(store.erasure && { erasure: store.erasure }),
  };
}

function toStored(text: string, keyring: Keyring | null, run?: string): string {
  if (keyring !== null) {
    const key = keyring.keyFor(run);
    const sealed = keyring.seal('blob', Buffer.from(text), key).toString('base64');
    return `${ENCRYPTED}${key}\n${sealed}`;
  }
  return text.startsWith(ENCRYPTED) || text.startsWith(CLEAR) ? CLEAR + text : text;
}

function inClear(): Error {
  return new Error(
    `it is in clear, and \`encryption.required\` refuses it: it was stored without a key; ${CLEAR_FIX}`,
  );
}

function unreadable(sha256: string, cause: unknown): BlobError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new BlobError(`blob ${sha256} cannot be read: ${why}`, { kind: 'unreadable', cause });
}
