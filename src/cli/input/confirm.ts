import { createInterface } from 'node:readline/promises';
import { type CliContext, UsageError } from '../context.js';

/** How a person answers; `interrupted`: with Ctrl-C, which ends the command. */
export type Confirmation = 'yes' | 'no' | 'interrupted';

/**
 * Throws a `UsageError` if a change cannot be confirmed: without a terminal, it needs `--yes` or
 * `--dry-run`.
 */
export function requireConfirmable(
  { isTty }: Pick<CliContext, 'isTty'>,
  { yes, dryRun }: { readonly yes: boolean; readonly dryRun: boolean },
): void {
  if (yes || dryRun || isTty) return;
  throw new UsageError(
    '--yes: expected where stdin, stdout, or stderr is not a terminal; see with --dry-run what would change',
  );
}

/** Asks a question at the terminal. Ctrl-D is a no. */
export async function confirm(question: string): Promise<Confirmation> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  let unanswered: Confirmation = 'no';
  terminal.once('close', () => closed.abort());
  terminal.once('SIGINT', () => {
    unanswered = 'interrupted';
    terminal.close();
  });
  try {
    const { signal } = closed;
    const answer = await terminal.question(`${question} yes / no `, { signal });
    return /^y(es)?$/i.test(answer.trim()) ? 'yes' : 'no';
  } catch (error) {
    if (!closed.signal.aborted) throw error;
    // The line of the question is not complete.
    process.stderr.write('\n');
    return unanswered;
  } finally {
    terminal.close();
  }
}
