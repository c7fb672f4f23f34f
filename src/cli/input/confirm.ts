import { type Interface, createInterface } from 'node:readline/promises';
import { show } from '../../core/text/text.js';
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

/** Opens the terminal for questions. `left` fires when it closes, also by Ctrl-D. */
export function openTerminal(): { readonly terminal: Interface; readonly left: AbortSignal } {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Readline intercepts Ctrl-C, so this passes it on to the process.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const left = new AbortController();
  terminal.once('close', () => left.abort());
  return { terminal, left: left.signal };
}

/** Asks a question at the terminal until the answer is yes or no. An empty line and Ctrl-D are a no. */
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
    for (;;) {
      const answer = (await terminal.question(`${question} yes / no `, { signal })).trim();
      if (/^y(es)?$/i.test(answer)) return 'yes';
      if (answer === '' || /^no?$/i.test(answer)) return 'no';
      process.stderr.write(`Expected yes or no, got ${show(answer)}.\n`);
    }
  } catch (error) {
    if (!closed.signal.aborted) throw error;
    // The line of the question is not complete.
    process.stderr.write('\n');
    return unanswered;
  } finally {
    terminal.close();
  }
}
