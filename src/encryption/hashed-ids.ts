import { createHmac, hkdfSync } from 'node:crypto';
import type { IdHashing } from '../temporal/stored-ids.js';

/** The environment variable with the id of the key that hashes ids. */
export const HASH_IDS_VARIABLE = 'PERDURE_ENCRYPTION_HASH_IDS';

const KEY_BYTES = 32;
/** Characters of a hash that tell the key: other keys are recognized as others, not which they are. */
const MARK_CHARACTERS = 4;
const HASH_CHARACTERS = 28;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Returns the hashing of ids with a key of the team, which is base64: HMAC-SHA256 with a key that is derived
 * from it, as `h-` and 32 characters, of which four are the same for all ids of the key. Without the
 * key, a guessed id cannot be tested.
 */
export function idHashing(base64: string, isStrict: boolean): IdHashing {
  const master = Buffer.from(base64, 'base64');
  const key = Buffer.from(hkdfSync('sha256', master, '', 'perdure 1 id', KEY_BYTES));
  const digest = (text: string, length: number): string =>
    base32(createHmac('sha256', key).update(text).digest()).slice(0, length);
  const prefix = `h-${digest('mark', MARK_CHARACTERS)}`;
  return {
    prefix,
    isStrict,
    hash: (kind, id) => prefix + digest(`${kind}\n${id}`, HASH_CHARACTERS),
  };
}

/** Returns bytes in base32 with lower-case letters, without padding. */
function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const groups = bits.match(/.{5}/g) ?? [];
  return groups.map((group) => ALPHABET[Number.parseInt(group, 2)]).join('');
}
