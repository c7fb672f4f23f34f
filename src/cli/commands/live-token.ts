import { runToken } from '../../live/run-token.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { RunTokenError } from '../../core/errors.js';

export interface LiveTokenOptions {
  readonly id: string;
  /** For how long the token is good. */
  readonly minutes: number;
}

/** `live-token ID`: a token by which this run can be read live, and no other. Asks no server. */
export const liveToken: Command<LiveTokenOptions> = async (context, { id, minutes }) => {
  const secret = context.env['PERDURE_LIVE_TOKEN'] ?? '';
  const token = mint({ run: id, token: secret, expiresInMs: minutes * 60_000 });
  const [, , expires = ''] = token.split('.');
  const expiresAt = new Date(Number(expires) * 1_000).toISOString();
  context.out(context.options.json ? JSON.stringify({ id, token, expiresAt }) : token);
  context.note(`Reads this run until ${expiresAt}: Authorization: Bearer …`);
  return EXIT.completed;
};

/** Throws a `UsageError` that speaks of the flags. */
function mint(options: Parameters<typeof runToken>[0]): string {
  try {
    return runToken(options);
  } catch (error) {
    if (!(error instanceof RunTokenError)) throw error;
    const message = error.message
      .replace(/^expiresInMs: .*$/s, `--minutes: expected 1 to 10080 (seven days)`)
      .replace(/^run:/, 'id:')
      .replace(/^token: expected the workers' token/, 'PERDURE_LIVE_TOKEN: expected a secret');
    throw new UsageError(message, { cause: error });
  }
}
