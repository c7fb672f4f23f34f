import { CommanderError } from 'commander';
import { NoServerError } from '../../core/errors.js';
import { printable, visibleJson } from '../../core/text/hidden.js';
import { redactMessage } from '../../secrets/redact.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';

/**
 * Writes an error to stderr, and with `--json` also to stdout. Returns the exit code. Writes the
 * stack trace only if PERDURE_DEBUG is set.
 */
export function reportError(
  error: unknown,
  { env, json }: { readonly env: NodeJS.ProcessEnv; readonly json: boolean },
): ExitCode {
  const message = redactMessage(error instanceof Error ? error.message : String(error));
  // Commander has already written its own errors to stderr.
  if (!(error instanceof CommanderError)) process.stderr.write(`error: ${printable(message)}\n`);
  if (json) process.stdout.write(`${visibleJson({ error: message.replace(/^error: /, '') })}\n`);
  if (env['PERDURE_DEBUG'] && error instanceof Error) {
    process.stderr.write(`${printable(redactMessage(error.stack ?? ''))}\n`);
  }
  return exitCodeOf(error);
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommanderError || error instanceof UsageError) return EXIT.usage;
  return error instanceof NoServerError ? EXIT.noServer : EXIT.failed;
}
