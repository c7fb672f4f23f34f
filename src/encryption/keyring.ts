import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { InputError, UnreadableError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { learnSecrets } from '../secrets/known.js';
import type { IdHashing } from '../temporal/stored-ids.js';
import type { TenantRules } from '../temporal/tenant-rules.js';
import { unknownOption } from '../validation/unknown-option.js';
import { HASH_IDS_VARIABLE, idHashing } from './hashed-ids.js';

/**
 * The keys with which a team encrypts what its runs record. Every worker, client, and command that
 * reads a run needs the key that the run was written with.
 *
 * @example
 * ```ts
 * // perdure.config.ts, with keys from the environment
 * import { defineAgent, defineConfig } from 'perdure';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'demo' });
 * const { KEY_2026 = '', KEY_2025 = '' } = process.env;
 *
 * export default defineConfig({
 *   agents: [clerk],
 *   ...(KEY_2026 && {
 *     encryption: { keys: { k2026: KEY_2026, ...(KEY_2025 && { k2025: KEY_2025 }) }, current: 'k2026' },
 *   }),
 * });
 * ```
 */
export interface EncryptionOptions {
  /**
   * Keys by their ids: base64 of 32 random bytes each, as `openssl rand -base64 32` prints. An id is
   * 1 to 64 letters, digits, `.`, `_`, and `-`; it is stored in clear beside what the key encrypts.
   * Default: the keys of PERDURE_ENCRYPTION_KEYS.
   */
  readonly keys?: Readonly<Record<string, string>>;
  /** The id of the key that encrypts what belongs to no tenant below. Required with `keys`. */
  readonly current?: string;
  /**
   * Tenants with a key of their own: the id of the key that encrypts, by the tenant's name. It encrypts what
   * belongs to runs and schedules whose ids begin with `TENANT/`; new ids of a tenant's runs do. Without that
   * key, nothing of the tenant can be read, so deleting it erases the tenant. Default: none.
   */
  readonly tenants?: Readonly<Record<string, string>>;
  /**
   * Whether whatever is in clear is refused: a worker or client without keys does not start, and payloads
   * and texts that were stored without a key are unreadable. Set it once nothing older is needed.
   * Default: false.
   */
  readonly required?: boolean;
  /**
   * The id of the key with which the ids that callers choose are hashed: those of runs, messages, decisions, and
   * schedules, and the names of tenants. The key must stay among `keys` when another one becomes `current`, because
   * ids are found by their hashes. Default: the key that PERDURE_ENCRYPTION_HASH_IDS names; without it, ids are in clear.
   */
  readonly hashIds?: string;
}

/**
 * The environment variable with keys: `id:base64`, comma-separated, of which the first encrypts. Of
 * `id@tenant:base64`, the first encrypts for that tenant.
 */
export const KEYS_VARIABLE = 'PERDURE_ENCRYPTION_KEYS';

/** What to do about what is in clear, although encryption is required. */
export const CLEAR_FIX =
  'find out who wrote it, or set `required: false` to read what is older than the keys';

/** For what a key is used. Each purpose has keys of its own, derived from those of the team. */
type Purpose = 'payload' | 'blob' | 'recording';

/** Encrypts and decrypts with AES-256-GCM. */
export interface Keyring {
  /** The id of the key that encrypts. */
  readonly current: string;
  /** Whether what is stored in clear is refused. */
  readonly required: boolean;
  /** How ids are hashed; null if they are in clear. */
  readonly ids: IdHashing | null;
  /**
   * Returns the id of the key that encrypts what belongs to the run or schedule with this id; without an id,
   * the current key. Throws an `UnreadableError` if only keys of tenants are here, and it belongs to none.
   */
  keyFor(id?: string): string;
  readonly tenants: TenantRules;
  /**
   * Encrypts bytes with the current key, or with the one that is named. For a blob and for a recording, the same bytes give the same
   * result: a store that is addressed by content stores them once, and a repository sees no change.
   */
  seal(purpose: Purpose, plain: Uint8Array, key?: string): Buffer;
  /**
   * Returns the same keys, of which the one with this id encrypts everything. Throws an `InputError` for an id that
   * none of them has.
   */
  with(current: string): Keyring;
  /**
   * Decrypts bytes that the key with this id has encrypted. `of`: the run or schedule that has them, if it is
   * known. Throws an `UnreadableError` that names the key if it is not here, if it is that of another tenant,
   * and if the bytes were changed.
   */
  open(purpose: Purpose, id: string, sealed: Uint8Array, of?: string): Buffer;
}

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const ID = /^[\w.-]{1,64}$/;
const HOW = 'make one with: openssl rand -base64 32';

/**
 * Returns the keys of the options, else those of PERDURE_ENCRYPTION_KEYS; null if there are none.
 * Throws an `InputError` that names the faulty key, and never shows its value, and if keys are
 * required and there are none.
 */
export function keyringFrom(
  options: EncryptionOptions | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Keyring | null {
  const hashIds = options?.hashIds ?? (env[HASH_IDS_VARIABLE]?.trim() || undefined);
  const hashing = hashIds === undefined ? {} : { hashIds };
  if (options?.keys !== undefined) return keyringOf({ ...options, ...hashing });
  const problem = options === undefined ? null : encryptionProblem(options);
  if (problem !== null) throw new InputError(problem);
  const required = options?.required === true;
  const given = keysIn(env[KEYS_VARIABLE]);
  if (given !== null) {
    const { owned, ...keys } = given;
    const tenants = { ...keys.tenants, ...options?.tenants };
    return keyringOf({ ...keys, tenants, required, ...hashing }, KEYS_VARIABLE, owned);
  }
  if (!required && hashIds === undefined) return null;
  const why = required ? '`required` is true' : 'ids are to be hashed';
  throw new InputError(
    `encryption: expected keys, because ${why}, got none; set ${KEYS_VARIABLE}, or \`encryption.keys\``,
  );
}

/** Returns why something that is encrypted with a key cannot be read where there is none. */
export function noKeyFor(id: string): string {
  return `it is encrypted with key ${show(id)}, and this process has no key; add the key to ${KEYS_VARIABLE}, or to \`encryption\` of the configuration`;
}

/**
 * Returns the keys of the options. `owned`: keys of tenants, also those that no longer encrypt. Throws an
 * `InputError` that names the faulty key at `at`.
 */
export function keyringOf(
  options: EncryptionOptions,
  at = 'encryption',
  owned: readonly OwnedKey[] = [],
): Keyring {
  const { keys: given, current = '', tenants = {}, required = false, hashIds } = options;
  const problem = encryptionProblem({ keys: {}, ...options }, at);
  if (problem !== null) throw new InputError(problem);
  learnSecrets({ values: Object.values(given ?? {}) });
  const keys = new Map(Object.entries(given ?? {}).map(([id, key]) => [id, deriveKeys(key)]));
  const hashing = hashIds === undefined ? undefined : given?.[hashIds];
  const ids = hashing === undefined ? null : idHashing(hashing, required);
  const tenantKeys = new Map(Object.entries(tenants));
  const all = [...owned, ...[...tenantKeys].map(([tenant, id]) => ({ tenant, id }))];
  return createKeyring(keys, { current, required, ids, tenantKeys, owned: all });
}

/** The names of all options. */
const NAMES = ['keys', 'current', 'tenants', 'required', 'hashIds'];

/** Returns what is wrong with the options, as `field: expected X, got Y; fix`; null if nothing is. */
export function encryptionProblem(options: unknown, at = 'encryption'): string | null {
  const other = isObject(options) && Object.keys(options).find((name) => !NAMES.includes(name));
  if (typeof other === 'string') return `${at}: ${unknownOption(other, NAMES)}`;
  const required = isObject(options) ? options['required'] : undefined;
  if (required !== undefined && typeof required !== 'boolean') {
    return `${at}: required: expected true or false, got ${show(required)}; set it to true to refuse what is in clear`;
  }
  const wrong = isObject(options) ? tenantsProblem(options, at) : null;
  if (wrong !== null) return wrong;
  if (isObject(options) && options['keys'] === undefined && options['current'] === undefined) {
    const given = [required, options['hashIds'], options['tenants']];
    const isEmpty = given.every((one) => one === undefined);
    return isEmpty ? `${at}: expected keys, got none; ${HOW}` : null;
  }
  if (!isObject(options) || !isObject(options['keys'])) {
    return `${at}: expected { keys: { id: key }, current: id }, got ${typeof options}; each key is base64 of 32 bytes: ${HOW}`;
  }
  const { keys, current } = options;
  for (const [id, key] of Object.entries(keys)) {
    if (!ID.test(id)) {
      return `${at}: expected ids of 1 to 64 letters, digits, ".", "_", and "-", got ${show(id)}; rename the key`;
    }
    const length = typeof key === 'string' ? Buffer.from(key, 'base64').length : 0;
    const isBase64 = typeof key === 'string' && /^[A-Za-z\d+/]{43}=$/.test(key.trim());
    if (length === KEY_BYTES && isBase64) continue;
    const got = typeof key === 'string' ? `${key.length} characters of another form` : typeof key;
    return `${at}: key "${id}": expected base64 of ${KEY_BYTES} bytes (44 characters), got ${got}; ${HOW}`;
  }
  const known = `expected the id of one of the keys (${Object.keys(keys)
    .map((id) => show(id))
    .join(', ')})`;
  const isKnown = (id: unknown): boolean => typeof id === 'string' && Object.hasOwn(keys, id);
  if (!isKnown(current)) {
    return `${at}: current: ${known}, got ${show(current)}; name the key that encrypts`;
  }
  const { hashIds } = options;
  if (hashIds === undefined || isKnown(hashIds)) return null;
  return `${at}: hashIds: ${known}, got ${show(hashIds)}; name the key that hashes ids, and keep it among the keys`;
}

/** A tenant with a key: its name begins ids, and stands in the variable. */
const TENANT = /^[^/,:@\s\p{Cc}]{1,64}$/u;

function tenantsProblem(
  { tenants, hashIds }: Readonly<Record<string, unknown>>,
  at: string,
): string | null {
  if (tenants === undefined) return null;
  if (!isObject(tenants)) {
    return `${at}: tenants: expected the ids of keys by tenants, such as { acme: 'acme-1' }, got ${show(tenants)}`;
  }
  if (hashIds !== undefined && Object.keys(tenants).length > 0) {
    return `${at}: expected either hashIds or tenants, got both; a hashed id leads to no tenant, so remove one of them`;
  }
  for (const [tenant, key] of Object.entries(tenants)) {
    if (!TENANT.test(tenant)) {
      return `${at}: tenants: expected names of 1 to 64 characters without "/", ",", ":", "@", and blanks, got ${show(tenant)}; use an id`;
    }
    if (typeof key === 'string' && ID.test(key)) continue;
    return `${at}: tenants: ${tenant}: expected the id of a key, got ${show(key)}; name the key that encrypts for this tenant`;
  }
  return null;
}

/** A key that encrypts, or has encrypted, for a tenant. */
interface OwnedKey {
  readonly id: string;
  readonly tenant: string;
}

/** What the variable says. */
interface GivenKeys extends Pick<EncryptionOptions, 'keys' | 'current' | 'tenants'> {
  readonly owned: readonly OwnedKey[];
}

/** Reads the variable; null if it is not set. Throws an `InputError` for a key without an id, or an id twice. */
function keysIn(text = ''): GivenKeys | null {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  if (parts.length === 0) return null;
  if (!parts.every((part) => part.includes(':'))) {
    throw new InputError(
      `${KEYS_VARIABLE}: expected ID:KEY, or several with commas between them, got a key without an id; write an id of your choice before it, such as k1:KEY`,
    );
  }
  const keys = parts.map((part) => {
    const at = part.indexOf(':');
    const [id = '', ...tenant] = part.slice(0, at).trim().split('@');
    return { id, key: part.slice(at + 1).trim(), tenant: tenant.join('@') };
  });
  const twice = keys.find(({ id }, at) => keys.findIndex((other) => other.id === id) !== at);
  if (twice !== undefined) {
    throw new InputError(
      `${KEYS_VARIABLE}: expected each id once, got ${show(twice.id)} twice; a new key needs an id of its own`,
    );
  }
  const shared = keys.find(({ tenant }) => tenant === '') ?? keys[0];
  // The first key of each tenant encrypts.
  const ofTenants = keys.filter(({ tenant }) => tenant !== '').toReversed();
  return {
    keys: Object.fromEntries(keys.map(({ id, key }) => [id, key])),
    current: shared?.id ?? '',
    tenants: Object.fromEntries(ofTenants.map(({ id, tenant }) => [tenant, id])),
    owned: ofTenants,
  };
}

/** The keys of each purpose, and that from which a blob's initialization vector is made. */
type DerivedKeys = Readonly<Record<Purpose | 'vector', Buffer>>;

function deriveKeys(base64: string): DerivedKeys {
  const master = Buffer.from(base64, 'base64');
  const derive = (what: string): Buffer =>
    Buffer.from(hkdfSync('sha256', master, '', `perdure 1 ${what}`, KEY_BYTES));
  return {
    payload: derive('payload'),
    blob: derive('blob'),
    recording: derive('recording'),
    vector: derive('vector'),
  };
}

interface KeyringPlan extends Pick<Keyring, 'current' | 'required' | 'ids'> {
  /** The ids of keys by tenants. */
  readonly tenantKeys: ReadonlyMap<string, string>;
  readonly owned: readonly OwnedKey[];
}

/** Returns the tenant to which an id leads: what is before its first slash. */
function leadOf(id: string): string {
  return id.slice(0, Math.max(0, id.indexOf('/')));
}

/** Returns what the keys of tenants ask of ids. `isShared`: a key for what belongs to none of them is here. */
function rulesFor({ tenantKeys }: Pick<KeyringPlan, 'tenantKeys'>, isShared: boolean): TenantRules {
  const known = [...tenantKeys.keys()].map((tenant) => show(tenant)).join(', ');
  return {
    idPrefix: (tenant) => (tenant !== undefined && tenantKeys.has(tenant) ? `${tenant}/` : ''),
    tenantOf(id) {
      const lead = leadOf(id);
      return tenantKeys.has(lead) ? lead : undefined;
    },
    problem({ id, tenant }) {
      const [lead, hasKey] = [leadOf(id), tenant !== undefined && tenantKeys.has(tenant)];
      if (hasKey && lead !== tenant) {
        return `id: expected one that begins with "${tenant}/", because tenant "${tenant}" has an encryption key of its own, got ${show(id)}; change it, or omit it for a new id`;
      }
      if (!hasKey && tenantKeys.has(lead)) {
        const got = tenant === undefined ? 'none' : show(tenant);
        return `tenant: expected ${show(lead)}, because an id that begins with "${lead}/" leads to the encryption key of that tenant, got ${got}; give the tenant, or another id`;
      }
      if (hasKey || isShared) return null;
      return `tenant: expected one of ${known}, because only their encryption keys are here, got ${tenant === undefined ? 'none' : show(tenant)}`;
    },
  };
}

function createKeyring(keys: ReadonlyMap<string, DerivedKeys>, plan: KeyringPlan): Keyring {
  const { current, required, ids, tenantKeys, owned } = plan;
  // A tenant's key encrypts nothing of others.
  const isShared = ![...tenantKeys.values()].includes(current);
  const find = (id: string): DerivedKeys => {
    const found = keys.get(id);
    if (found !== undefined) return found;
    const known = [...keys.keys()].map((key) => `"${key}"`).join(', ');
    throw new UnreadableError(
      `it is encrypted with key ${show(id)}, and this process has only ${known}; add the key to ${KEYS_VARIABLE}, or to \`encryption.keys\` of the configuration`,
    );
  };
  /** A worker with several keys must not decrypt for one tenant what the key of another has encrypted. */
  const assertOwn = (id: string, of: string): void => {
    const owners = owned.filter((one) => one.id === id).map(({ tenant }) => tenant);
    if (owners.length === 0 || owners.includes(leadOf(of))) return;
    const whose = owners.map((tenant) => show(tenant)).join(', ');
    throw new UnreadableError(
      `it is encrypted with key ${show(id)} of tenant ${whose}, and ${show(of)} is not of that tenant; a payload was copied there, or the tenant's key encrypted for others before: give the tenant a key of its own`,
    );
  };
  return {
    current,
    required,
    tenants: rulesFor(plan, isShared),
    keyFor(id) {
      if (id === undefined || tenantKeys.size === 0) return current;
      const own = tenantKeys.get(leadOf(id));
      if (own !== undefined) return own;
      if (isShared) return current;
      throw new UnreadableError(
        `${show(id)} belongs to no tenant whose encryption key is here; add the key that encrypts the rest to ${KEYS_VARIABLE}, or to \`encryption.keys\` of the configuration, and name it first, or as \`current\``,
      );
    },
    with(id) {
      const none = new Map<string, string>();
      const tenantless = { current: id, required, ids, tenantKeys: none, owned: [] };
      if (keys.has(id)) return createKeyring(keys, tenantless);
      const known = [...keys.keys()].map((one) => `"${one}"`).join(', ');
      throw new InputError(`key: expected the id of one of the keys (${known}), got ${show(id)}`);
    },
    ids,
    seal(purpose, plain, id = current) {
      const { [purpose]: key, vector } = find(id);
      const iv = purpose === 'payload' ? randomBytes(IV_BYTES) : vectorOf(vector, plain);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(id));
      const body = [cipher.update(plain), cipher.final()];
      return Buffer.concat([iv, cipher.getAuthTag(), ...body]);
    },
    open(purpose, id, sealed, of) {
      if (of !== undefined) assertOwn(id, of);
      const { [purpose]: key } = find(id);
      try {
        const [iv, rest] = [sealed.subarray(0, IV_BYTES), sealed.subarray(IV_BYTES)];
        const options = { authTagLength: TAG_BYTES };
        const decipher = createDecipheriv('aes-256-gcm', key, iv, options)
          .setAAD(Buffer.from(id))
          .setAuthTag(rest.subarray(0, TAG_BYTES));
        return Buffer.concat([decipher.update(rest.subarray(TAG_BYTES)), decipher.final()]);
      } catch (error) {
        throw new UnreadableError(
          `it cannot be decrypted with key ${show(id)}: it was changed, or another key had this id; restore it, or the key`,
          { cause: error },
        );
      }
    },
  };
}

/** Returns a vector that only the same bytes have, so no two blobs or recordings share one. */
function vectorOf(key: Buffer, plain: Uint8Array): Buffer {
  return createHmac('sha256', key).update(plain).digest().subarray(0, IV_BYTES);
}
