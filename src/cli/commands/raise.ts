import { LIMIT_NAMES, type LimitName } from '../../core/definition/definition.js';
import type { Request } from '../../core/requests/request.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { UsageError } from '../exit-codes.js';
import { submitDecision } from '../requests/decide.js';
import { limitFlag } from '../../core/requests/commands.js';

/** By how much to raise each limit; `wall` is in ms. */
type Added = Readonly<Partial<Record<Exclude<LimitName, 'wallMs'> | 'wall', number>>>;

export interface RaiseOptions extends Added {
  readonly id: string;
  readonly request: string;
  readonly digest?: string;
  readonly by?: string;
}

/** `raise ID REQUEST`: raises the limit that a run has reached by the given amount. */
export const raise: Command<RaiseOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<request>', 'the request, as inbox shows it'),
      'digest',
      'steps',
      'toolCalls',
      'tokens',
      'costUsd',
      'wall',
      'depth',
      'by',
    ),
  async run(context, { id, request, digest, by, ...given }) {
    const added = addedBy(given);
    const [name] = Object.keys(added);
    const what = { as: 'raise', command: 'raise', arguments: added } as const;
    return await submitDecision(context, {
      id,
      request,
      digest,
      by,
      ...what,
      check: ({ request: found }) => checkLimit(found, name ?? ''),
    });
  },
};

/**
 * Returns the limit to raise and the amount. Throws a `UsageError` unless the options set exactly
 * one limit.
 */
export function addedBy({ wall, ...rest }: Added): Readonly<Record<string, number>> {
  const given: Readonly<Partial<Record<LimitName, number>>> = {
    ...rest,
    ...(wall !== undefined && { wallMs: wall }),
  };
  const named = LIMIT_NAMES.flatMap((name) => {
    const value = given[name];
    return value === undefined ? [] : [{ name, value }];
  });
  const [first] = named;
  if (first === undefined || named.length > 1) {
    const got =
      named.length === 0 ? 'none' : named.map(({ name }) => limitFlag(name)).join(' and ');
    throw new UsageError(`raise: expected one limit, got ${got}; give for example --steps 10`);
  }
  const { name, value } = first;
  if (value > 0 && (name === 'costUsd' || Number.isInteger(value))) return { [name]: value };
  const kind = name === 'costUsd' ? 'number' : 'whole number';
  throw new UsageError(`${limitFlag(name)}: expected a positive ${kind}, got ${value}`);
}

/** Throws a `UsageError` if the request is about another limit, or not about a limit. */
function checkLimit({ id, limit }: Request, name: string): void {
  if (limit === undefined) {
    throw new UsageError(
      `raise: expected a request about a limit, got ${visible(id)}; see what it asks for with inbox`,
    );
  }
  if (limit.name === name) return;
  throw new UsageError(
    `raise: expected ${limitFlag(limit.name)}, the limit that the run has reached; got another one`,
  );
}
