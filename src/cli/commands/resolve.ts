import type { Json } from '../../core/json.js';
import type { Request } from '../../core/requests/request.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { CommandError, UsageError } from '../exit-codes.js';
import { submitDecision } from '../requests/decide.js';
import { chosenActions } from '../requests/read-decision.js';
import { noteOf } from './deny.js';

/** The decisions that need no further arguments than these options. */
const WORDS = [
  'happened',
  'retry',
  'abandon',
  'accept',
  'approve',
  'some',
  'deny',
  'answer',
  'stop',
] as const;
const WITH_RESULT: readonly string[] = ['happened', 'answer'];

export interface ResolveCommandOptions {
  readonly id: string;
  /** The request, or the call that it is about. */
  readonly call: string;
  readonly as: (typeof WORDS)[number];
  /** Parsed JSON. */
  readonly result?: Json;
  /** With `some`: the ids of the actions of a plan. */
  readonly actions?: string;
  /** The hash of the changed tool that is accepted. */
  readonly definition?: string;
  readonly digest?: string;
  readonly note?: string;
  readonly by?: string;
}

/**
 * `resolve ID CALL`: records a person's decision about a call or a request. The first decision
 * wins.
 */
export const resolve: Command<ResolveCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<id>', 'the run')
        .argument('<call>', 'the call or the request, as status shows it'),
      'as',
      'result',
      'actions',
      'definition',
      'digest',
      'note',
      'by',
    ),
  async run(context, { call, result, definition, note, actions, ...given }) {
    const { as } = given;
    if (result !== undefined && !WITH_RESULT.includes(as)) {
      throw new UsageError(`--result: expected --as happened, got --as ${as}; omit --result`);
    }
    if (actions !== undefined && as !== 'some') {
      throw new UsageError(`--actions: expected --as some, got --as ${as}; omit --actions`);
    }
    checkAcceptance(as, definition, given.digest);
    return await submitDecision(context, {
      ...given,
      request: call,
      command: 'resolve',
      ...(result !== undefined && { result }),
      ...noteOf(note),
      ...(actions !== undefined && chosenActions(actions)),
      check: ({ request }) => checkDefinition(request, definition),
    });
  },
};

/**
 * Throws a `UsageError` unless the person accepts exactly the form of the tool that they have seen.
 */
function checkAcceptance(as: string, definition: string | undefined, digest: string | undefined) {
  if (as === 'accept' && definition === undefined && digest === undefined) {
    throw new UsageError(
      '--definition: expected the hash that status shows, or --digest, got none; --as accept needs it',
    );
  }
  if (as !== 'accept' && definition !== undefined) {
    throw new UsageError(`--definition: expected --as accept, got --as ${as}; omit --definition`);
  }
}

function checkDefinition(request: Request, definition: string | undefined): void {
  if (definition === undefined || definition === request.definition) return;
  throw new CommandError(
    'changed',
    `--definition: expected ${request.definition ?? 'none, since no tool has changed'}, got ${visible(definition)}; ` +
      'the tool may have changed again, so review it before you accept it',
  );
}
