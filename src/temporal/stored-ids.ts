import type { Client } from '@temporalio/client';

/** What an id that a caller chooses names. The same text is another hash for each of them. */
export type IdKind = 'run' | 'message' | 'decision' | 'schedule' | 'tenant';

/** Makes the hashes under which the server has the ids that callers choose. */
export interface IdHashing {
  /** Returns the hash of an id, in the form that `isHashedId` recognizes. It depends on nothing but the key. */
  hash(kind: IdKind, id: string): string;
  /** The beginning of all hashes with this key, and with hardly any other. */
  readonly prefix: string;
  /** Whether an id that a caller names is never sent as it is, not even to find a run of before. */
  readonly isStrict: boolean;
}

/** A hash, alone or at the beginning of an id that derives from it: of a called run, or of a firing. */
const HASHED = /^h-[a-z2-7]{32}(?![^/-])/;

/** Whether an id is a hash, or derives from one. Such an id is never hashed again. */
export function isHashedId(id: string): boolean {
  return HASHED.test(id);
}

const hashings = new WeakMap<Client, IdHashing>();

/** Makes all that perdure does with this client of the SDK hash ids; null changes nothing. */
export function setIdHashing(client: Client, hashing: IdHashing | null): void {
  if (hashing !== null) hashings.set(client, hashing);
}

/** Returns how the ids of a client are hashed; null if they stay as they are. */
export function idHashingOf(client: Client): IdHashing | null {
  return hashings.get(client) ?? null;
}

/** Returns the id as the server gets it: a hash, unless the client hashes none, or it is one. */
export function hashedId(client: Client, kind: IdKind, id: string): string {
  return hashedWith(idHashingOf(client), kind, id);
}

/** The same, for a program without a client. */
export function hashedWith(hashing: IdHashing | null, kind: IdKind, id: string): string {
  // A value of another type is refused by its own check.
  if (hashing === null || typeof id !== 'string' || id === '' || isHashedId(id)) return id;
  return hashing.hash(kind, id);
}

/**
 * Returns the ids under which the server may have what a caller names, the first one first: the hash, and the id itself
 * if it may be from before ids were hashed.
 */
export function storedForms(
  hashing: IdHashing | null,
  kind: IdKind,
  id: string,
): readonly [string, ...string[]] {
  const hashed = hashedWith(hashing, kind, id);
  return hashed === id || hashing?.isStrict !== false ? [hashed] : [hashed, id];
}

/** The field of a memo, which is encrypted, with what a caller has chosen. */
const MEMO_FIELD = 'given';

/** What a caller has chosen, where the server has only its hash. */
export interface GivenNames {
  /** The id that the caller chose, or that was generated; absent if the id is as it was given. */
  readonly givenId?: string;
  /** The tenant that the caller named; absent if it is as it was given. */
  readonly givenTenant?: string;
}

/** Returns the memo with which a run or a schedule starts; empty if nothing is hashed. */
export function givenMemo({ givenId, givenTenant }: GivenNames): Readonly<Record<string, unknown>> {
  if (givenId === undefined && givenTenant === undefined) return {};
  return {
    [MEMO_FIELD]: {
      ...(givenId !== undefined && { id: givenId }),
      ...(givenTenant !== undefined && { tenant: givenTenant }),
    },
  };
}

/** Reads what `givenMemo` has written from a decoded memo. */
export function readGiven(memo: Readonly<Record<string, unknown>> | undefined): GivenNames {
  const given: unknown = memo?.[MEMO_FIELD];
  if (typeof given !== 'object' || given === null) return {};
  const { id, tenant }: Partial<Record<string, unknown>> = { ...given };
  return {
    ...(typeof id === 'string' && { givenId: id }),
    ...(typeof tenant === 'string' && { givenTenant: tenant }),
  };
}
