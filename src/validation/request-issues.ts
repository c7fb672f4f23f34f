import { z } from 'zod';
import { show } from '../core/text/text.js';
import { likelyMeant } from './near-names.js';

/**
 * Says what a field of a request expects, and which name may be meant, as the error map of a schema; undefined
 * for the words of zod. `describeIssues` adds the received value before the fix.
 */
export function requestIssue(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_value': {
      const names = issue.values.map(String);
      const expected = `expected ${names.length > 1 ? 'one of ' : ''}${names.join(', ')}`;
      const { input } = issue;
      const meant = typeof input === 'string' ? likelyMeant(input, names) : undefined;
      return meant === undefined ? expected : `${expected}; did you mean ${meant}?`;
    }
    case 'unrecognized_keys': {
      return issue.inst instanceof z.ZodObject
        ? unknownFields(issue.keys, Object.keys(issue.inst.shape))
        : undefined;
    }
    case 'invalid_type': {
      const kind = KINDS[issue.expected];
      return kind === undefined ? undefined : `expected ${kind}`;
    }
    case 'too_small':
    case 'too_big': {
      const limit = issue.code === 'too_small' ? issue.minimum : issue.maximum;
      return outOfRange(issue, `${issue.code === 'too_small' ? 'at least' : 'at most'} ${limit}`);
    }
    default: {
      return undefined;
    }
  }
}

/** The kinds whose names in zod are those of TypeScript. */
const KINDS: Readonly<Record<string, string>> = { record: 'object', int: 'whole number' };

/** Returns the refusal of fields that an object does not have, with those that it has. */
function unknownFields(keys: readonly string[], known: readonly string[]): string {
  const [first = ''] = keys;
  const meant = likelyMeant(first, known);
  const got = keys.map((key) => show(key)).join(', ');
  const fix = meant === undefined ? '' : `; did you mean ${meant}?`;
  return `expected one of the fields ${known.join(', ')}, got ${got}${fix}`;
}

/** Returns the refusal of a length, which it shows in place of the value, or of a number. */
function outOfRange(
  { origin, input }: { readonly origin: string; readonly input?: unknown },
  bound: string,
): string {
  const isOne = bound.endsWith(' 1');
  if (typeof input === 'string') {
    return `expected ${bound} character${isOne ? '' : 's'}, got ${input.length}`;
  }
  if (Array.isArray(input)) return `expected ${bound} item${isOne ? '' : 's'}, got ${input.length}`;
  return `expected a ${origin === 'int' ? 'whole number' : 'number'} of ${bound}`;
}
