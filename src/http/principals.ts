import { createHash } from 'node:crypto';
import type { ExportedJWKSCache, JWKSCacheInput, JWTVerifyGetKey } from 'jose';
import { type AgentRights, RIGHTS, type Right, type ServeOptions } from '../config.js';
import { matchesGlob } from '../core/definition/predicate.js';
import { InputError } from '../core/errors.js';
import { checkBy } from '../core/input/turn-context.js';
import { isObject, textField } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { learnSecrets } from '../secrets/known.js';
import { HttpError } from './errors.js';

/** An agent, and a tenant for which it works; an empty one: runs without a tenant. */
export interface AgentOfTenant {
  readonly agent: string;
  readonly tenant?: string | undefined;
}

/** Who sent a request, as the server has verified it, and what it may do. */
export interface Principal {
  readonly name: string;
  readonly groups: readonly string[];
  /** The tenants whose runs it may start and see; empty: all runs. */
  readonly tenants: readonly string[];
  /** Whether it has a right about all runs of an agent; without `tenant`, about those of any tenant of it. */
  may(right: Right, about: AgentOfTenant): boolean;
  /** Whether it has a right about all runs of all agents, of every tenant. */
  mayAll(right: Right): boolean;
}

/** Finds out who sent a request. Rejects with an `HttpError` (401) if it cannot tell. */
export type Authenticate = (authorization: string | undefined) => Promise<Principal>;

const MIN_KEY = 16;
const KEYS_VARIABLE = 'PERDURE_SERVE_KEYS';

/** Returns the name of a tenant as the server has it. One that it has already stays as it is. */
type StoredTenant = (name: string) => string;

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the options or the environment say how principals prove who they are. */
export function hasKeys({ keys, oidc }: ServeOptions, env: Environment): boolean {
  return (
    Object.keys(keys ?? {}).length > 0 || oidc !== undefined || (env[KEYS_VARIABLE] ?? '') !== ''
  );
}

/**
 * Returns the function that authenticates requests. Without keys and OIDC, every request is that of
 * one principal, `local`: of whoever can reach this machine. Throws an `InputError` for a missing or an unusable key.
 */
export function authenticator(
  options: ServeOptions,
  {
    env,
    local: localName,
    storedTenant = (name) => name,
  }: {
    readonly env: Environment;
    readonly local: string;
    readonly storedTenant?: StoredTenant;
  },
): Authenticate {
  const principal = principals(options, storedTenant);
  if (!hasKeys(options, env)) {
    const local = principal(localName, []);
    return () => Promise.resolve(local);
  }
  const names = new Map(readKeys(options, env).map(([name, key]) => [digest(key), name]));
  const keyNames = new Set(names.values());
  const verify = options.oidc === undefined ? null : tokenVerifier(options.oidc);
  return async (authorization = '') => {
    const [, token = ''] = /^Bearer ([\x21-\x7e]{1,8192})$/i.exec(authorization) ?? [];
    if (token === '') throw unauthorized('expected "Bearer" and a key, got none');
    const name = names.get(digest(token));
    if (name !== undefined) return principal(name, []);
    const found = verify === null ? null : await verify(token);
    if (found === null) throw unauthorized('the key is unknown, or the token is not valid');
    // The issuer chooses the names of its tokens, and must not choose that of a key.
    if (keyNames.has(found.name)) throw unauthorized('the token has the name of a key');
    return principal(found.name, found.groups);
  };
}

function unauthorized(problem: string): HttpError {
  return new HttpError(401, 'unauthorized', `Authorization: ${problem}`, {
    fix: `send one of the keys of ${KEYS_VARIABLE} or of \`serve\` in the configuration`,
    headers: { 'www-authenticate': 'Bearer' },
  });
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Returns the name of each principal with its key. */
function readKeys({ keys = {} }: ServeOptions, env: Environment): readonly [string, string][] {
  const named = (env[KEYS_VARIABLE] ?? '')
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .map((pair): [string, string] => {
      const at = pair.indexOf(':');
      return [pair.slice(0, Math.max(0, at)), pair.slice(at + 1)];
    });
  const configured = Object.entries(keys).map(([name, variable]): [string, string] => {
    const key = env[variable] ?? '';
    if (key !== '') return [name, key];
    throw new InputError(
      `serve.keys.${name}: expected a key in the environment variable ${variable}, got none; set it, e.g. to the output of: openssl rand -hex 32`,
    );
  });
  const all = [...named, ...configured];
  for (const [name, key] of all) {
    // The key is a secret, so no message contains it.
    if (checkBy(name) !== null || name === '*') {
      throw new InputError(
        `${KEYS_VARIABLE}: expected name:key, comma-separated, with names of 1 to 200 characters; got the name ${show(name)}`,
      );
    }
    if (key.length >= MIN_KEY && /^[\x21-\x7e]+$/.test(key)) continue;
    throw new InputError(
      `serve: the key of ${show(name)}: expected at least ${MIN_KEY} visible ASCII characters, got ${key.length} characters; make one with: openssl rand -hex 32`,
    );
  }
  const twice = all.find(([, key], at) => all.some((other, n) => n < at && other[1] === key));
  if (twice !== undefined) {
    throw new InputError(
      `serve: expected a key of its own for each principal; ${show(twice[0])} has that of another`,
    );
  }
  learnSecrets({ values: all.map(([, key]) => key) });
  return all;
}

/** Returns the entry of a name, which another site chooses; none if there is no such entry. */
function own<T>(table: Readonly<Record<string, T>>, name: string): readonly T[] {
  const found = Object.hasOwn(table, name) ? table[name] : undefined;
  return found === undefined ? [] : [found];
}

/** Returns the function that makes a principal with its rights. */
function principals(
  options: ServeOptions,
  storedTenant: StoredTenant,
): (name: string, groups: readonly string[]) => Principal {
  const { principals: known, groups: rightsOfGroups = {} } = options;
  const isOpen = known === undefined && options.groups === undefined;
  return (name, tokenGroups) => {
    const entries = [...own(known ?? {}, name), ...own(known ?? {}, '*')];
    const groups = [...new Set([...entries.flatMap((one) => one.groups ?? []), ...tokenGroups])];
    const all = [...entries, ...groups.flatMap((group) => own(rightsOfGroups, group))];
    const tenants = [...new Set(all.flatMap(({ tenant }) => tenant ?? []))];
    /** The rights about runs of a tenant. Those of an entry with a tenant of its own are about that one only. */
    const tablesFor = (tenant: string | undefined): readonly AgentRights[] => {
      if (tenant === undefined) return all.map(({ rights = {} }) => rights);
      const isIt = (one: string): boolean => storedTenant(one) === storedTenant(tenant);
      if (tenants.length > 0 && !tenants.some(isIt)) return [];
      return all.flatMap(({ rights = {}, tenant: only = tenant }) => (isIt(only) ? [rights] : []));
    };
    return {
      name,
      groups,
      tenants,
      may: (right, { agent, tenant }) =>
        isOpen || tablesFor(tenant).some((table) => allows(table, right, agent)),
      mayAll: (right) =>
        tenants.length === 0 &&
        (isOpen || tablesFor(undefined).some((table) => includes(table['*'] ?? [], right))),
    };
  };
}

function allows(table: AgentRights, right: Right, agent: string): boolean {
  return Object.entries(table).some(
    ([glob, rights]) => matchesGlob(agent, glob) && includes(rights, right),
  );
}

function includes(rights: AgentRights[string], right: Right): boolean {
  return rights === 'all' || rights.includes(right);
}

/** Returns the rights that a principal has about an agent, for any tenant of it. */
export function rightsOf(principal: Principal, agent: string): readonly Right[] {
  return RIGHTS.filter((right) => principal.may(right, { agent }));
}

interface VerifiedToken {
  readonly name: string;
  readonly groups: readonly string[];
}

const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'EdDSA',
];

/**
 * Returns a function that verifies OIDC tokens: signature by the keys of the issuer, issuer, audience,
 * and time. It returns null for a token that is not valid, and rejects with an `HttpError` (503) if the
 * keys cannot be read.
 */
function tokenVerifier({
  issuer,
  audience,
  jwksUrl,
  nameClaim = 'sub',
  groupsClaim = 'groups',
}: NonNullable<ServeOptions['oidc']>): (token: string) => Promise<VerifiedToken | null> {
  let keys: Promise<JWTVerifyGetKey> | undefined;
  const open = async (): Promise<JWTVerifyGetKey> =>
    await keySet(jwksUrl ?? (await discover(issuer)));
  return async (token) => {
    // Anything but a signed token needs no keys.
    if (token.split('.').length !== 3) return null;
    const { jwtVerify } = await import('jose');
    try {
      const set = await (keys ??= open().catch((error: unknown) => {
        keys = undefined;
        throw error;
      }));
      const { payload } = await jwtVerify(token, set, { issuer, audience, algorithms: ALGORITHMS });
      const name = payload[nameClaim];
      const groups = payload[groupsClaim];
      if (typeof name !== 'string' || payload.exp === undefined || checkBy(name) !== null)
        return null;
      return {
        name,
        groups: Array.isArray(groups) ? groups.filter((one) => typeof one === 'string') : [],
      };
    } catch (error) {
      if (isAboutToken(error)) return null;
      throw new HttpError(503, 'no_keys', 'the keys of the token issuer cannot be read', {
        fix: 'try again; if it stays so, check `serve.oidc` in the configuration',
        cause: error,
      });
    }
  };
}

/** The codes of unusable answers of an issuer; all other codes are about the token. */
const ABOUT_ISSUER = ['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID'];

function isAboutToken(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code.startsWith('ERR_J') && !ABOUT_ISSUER.includes(code);
}

/** How long known keys are used while the issuer does not answer; a key that it revokes ends later then. */
const OUTAGE_MS = 60 * 60_000;
/** How long such an issuer is left alone. */
const PAUSE_MS = 30_000;

/** Returns the keys of an issuer. They are read again after ten minutes, and for a key id that is new. */
async function keySet(url: string): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet, createRemoteJWKSet, jwksCache } = await import('jose');
  const read: Partial<ExportedJWKSCache> = {};
  // The set keeps its keys, and the time of their reading, in this object.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an empty cache
  const remote = createRemoteJWKSet(new URL(url), { [jwksCache]: read as JWKSCacheInput });
  let pausedUntil = 0;
  return async (header, token) => {
    const { jwks, uat = 0 } = read;
    const known = jwks !== undefined && Date.now() < uat + OUTAGE_MS ? jwks : null;
    if (known === null) return await remote(header, token);
    if (Date.now() >= pausedUntil) {
      try {
        return await remote(header, token);
      } catch (error) {
        if (isAboutToken(error)) throw error;
        pausedUntil = Date.now() + PAUSE_MS;
      }
    }
    return await createLocalJWKSet(known)(header, token);
  };
}

const DISCOVERY_MS = 5_000;

async function discover(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await fetch(url, {
    signal: AbortSignal.timeout(DISCOVERY_MS),
    redirect: 'error',
  });
  const found: unknown = await response.json();
  const jwks = isObject(found) ? textField(found, 'jwks_uri') : '';
  if (!response.ok || !URL.canParse(jwks)) throw new Error(`${url} names no jwks_uri`);
  return jwks;
}
