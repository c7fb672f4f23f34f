import { show } from '../text/format-value.js';

/** Who may decide: the one who asked for the turn, anyone else, or one of these names. */
export type Deciders = 'requester' | 'not_requester' | readonly string[];

const MAX_NAMES = 50;
const MAX_NAME_CHARACTERS = 200;

/** The person who decides, and the people behind the turn. */
export interface Deciding {
  readonly by: string | undefined;
  /** All who have sent messages for the turn, and for the turns of its callers. */
  readonly requesters: readonly string[];
  /** The senders of messages that have not joined the turn yet. They do not count as requesters. */
  readonly joining?: readonly string[];
  /** The sender of one of these messages is unknown, so no one can be told apart from that sender. */
  readonly anonymous?: boolean;
}

/**
 * Returns why this person may not decide, or null. No one may decide if the deciders are none of
 * these, such as a word of another version.
 */
export function deciderProblem(
  deciders: readonly Deciders[],
  { by, requesters, joining = [], anonymous = false }: Deciding,
): string | null {
  if (deciders.length === 0) return null;
  if (by === undefined) {
    return `by: expected ${decidersText(deciders)}, got none; pass \`by\``;
  }
  const allowed = deciders.every((each) => {
    if (each === 'requester') return requesters.includes(by);
    // Without the requester's name, the run cannot tell whether another person decides.
    if (each === 'not_requester') {
      return !anonymous && requesters.length > 0 && ![...requesters, ...joining].includes(by);
    }
    return Array.isArray(each) && each.includes(by);
  });
  if (allowed) return null;
  const isUnknown =
    (requesters.length === 0 && deciders.includes('requester')) ||
    ((requesters.length === 0 || anonymous) && deciders.includes('not_requester'));
  const began =
    requesters.length === 0 ? 'it began without `by`' : 'one of its messages has no `by`';
  const hint = isUnknown ? `; the run does not know its requester, because ${began}` : '';
  return `by: expected ${decidersText(deciders)}, got ${show(by)}${hint}`;
}

/** Returns who may decide, in words. */
export function decidersText(deciders: readonly Deciders[]): string {
  if (deciders.length === 0) return 'anyone';
  return deciders.map(oneText).join(', and also ');
}

function oneText(deciders: Deciders): string {
  if (deciders === 'requester') return 'the requester';
  if (deciders === 'not_requester') return 'anyone but the requester';
  if (!Array.isArray(deciders)) return `no one, since the deciders ${show(deciders)} are unknown`;
  return deciders.length === 1 ? JSON.stringify(deciders[0]) : `one of ${deciders.join(', ')}`;
}

/** Returns what is wrong with a set of deciders, or null. */
export function decidersProblem(value: unknown, path: string): string | null {
  if (value === undefined || value === 'requester' || value === 'not_requester') return null;
  const fits =
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_NAMES &&
    value.every(
      (name) => typeof name === 'string' && name !== '' && name.length <= MAX_NAME_CHARACTERS,
    );
  if (fits) return null;
  return `${path}: expected "requester", "not_requester", or 1 to ${MAX_NAMES} names, got ${show(value)}`;
}
