import { RunTokenError } from '../../core/errors.js';
import { runToken } from '../../live/run-token.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';

export interface LiveTokenOptions {
  readonly id: string;
  /** How long the token is valid, in ms; default one hour. */
  readonly expiresIn?: number;
}

/**
 * `live-token ID`: creates a token that can read the live stream of one run. Contacts no server.
 */
export const liveToken: Command<LiveTokenOptions> = {
  declare: (entry) => withOptions(entry.argument('<id>', 'the run'), 'expiresIn'),
  run(context, { id, expiresIn }) {
    const secret = context.env['PERDURE_LIVE_TOKEN'] ?? '';
    const token = createToken({
      run: id,
      token: secret,
      ...(expiresIn !== undefined && { expiresIn }),
    });
    const [, , expires = ''] = token.split('.');
    const expiresAt = new Date(Number(expires) * 1_000).toISOString();
    context.out(context.options.json ? JSON.stringify({ id, token, expiresAt }) : token);
    context.note(`The token reads this run until ${expiresAt}: Authorization: Bearer …`);
    return Promise.resolve(EXIT.completed);
  },
};

/** Throws a `UsageError` that names the flags instead of the fields. */
function createToken(options: Parameters<typeof runToken>[0]): string {
  try {
    return runToken(options);
  } catch (error) {
    if (!RunTokenError.isInstance(error)) throw error;
    const message = error.message
      .replace(/^expiresIn: .*$/s, '--expires-in: expected 1s to 7d')
      .replace(/^run:/, 'id:')
      .replace(/^token: expected the workers' token/, 'PERDURE_LIVE_TOKEN: expected a secret');
    throw new UsageError(message, { cause: error });
  }
}
