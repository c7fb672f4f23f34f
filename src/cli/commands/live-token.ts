import { RunTokenError } from '../../core/errors.js';
import { runToken } from '../../live/run-token.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { parseNumber } from '../input/option-parsers.js';

export interface LiveTokenOptions {
  readonly id: string;
  /** How long the token is valid. */
  readonly minutes: number;
}

/**
 * `live-token ID`: creates a token that can read the live stream of one run. Contacts no server.
 */
export const liveToken: Command<LiveTokenOptions> = {
  declare: (entry) =>
    entry
      .argument('<id>', 'the run')
      .option('--minutes <n>', 'how long the token is valid, at most 10080', parseNumber, 60),
  run(context, { id, minutes }) {
    const secret = context.env['PERDURE_LIVE_TOKEN'] ?? '';
    const token = createToken({ run: id, token: secret, expiresInMs: minutes * 60_000 });
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
      .replace(/^expiresInMs: .*$/s, '--minutes: expected 1 to 10080 (seven days)')
      .replace(/^run:/, 'id:')
      .replace(/^token: expected the workers' token/, 'PERDURE_LIVE_TOKEN: expected a secret');
    throw new UsageError(message, { cause: error });
  }
}
