import { CommanderError } from 'commander';
import { NoServerError, PerdureError } from '../../core/errors.js';
import { printable, visibleJson } from '../../core/text/hidden.js';
import { redactMessage } from '../../secrets/redact.js';
import { grpcCode } from '../../temporal/grpc.js';
import { CommandError, EXIT, UsageError, type ErrorCode, type ExitCode } from '../exit-codes.js';

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
  if (json) {
    const line = { code: errorCode(error), error: message.replace(/^error: /, '') };
    process.stdout.write(`${visibleJson(line)}\n`);
  }
  if (env['PERDURE_DEBUG'] && error instanceof Error) {
    process.stderr.write(`${printable(redactMessage(error.stack ?? ''))}\n`);
  }
  return exitCodeOf(error);
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommanderError || error instanceof UsageError) return EXIT.usage;
  return error instanceof NoServerError ? EXIT.noServer : EXIT.failed;
}

/** Returns the stable code of an error: its own, else that of the error that caused it. */
export function errorCode(error: unknown): ErrorCode {
  const chain = causes(error);
  const [code = 'unexpected'] = chain.flatMap((one) => ownCode(one) ?? []);
  // An error about an option may have a cause that says more, such as an id that is taken.
  const [known] = chain.flatMap((one) => (PerdureError.isInstance(one) ? one.code : []));
  if (code === 'usage' && known !== undefined && known !== 'input') return known;
  return code === 'unexpected' && grpcCode(error) !== null ? 'server' : code;
}

function ownCode(error: Error): ErrorCode | null {
  if (error instanceof CommandError || PerdureError.isInstance(error)) return error.code;
  return error instanceof CommanderError ? 'usage' : null;
}

const MAX_CAUSES = 8;

function causes(error: unknown): readonly Error[] {
  const found: Error[] = [];
  for (let at = error; at instanceof Error && found.length < MAX_CAUSES; at = at.cause) {
    found.push(at);
  }
  return found;
}
