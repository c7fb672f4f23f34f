import type { CliContext } from '../context.js';
import { escapeHidden } from '../format/output.js';

/** Shows progress: lines that stay and, on a terminal, live lines that are overwritten. */
export interface Screen {
  line(text: string): void;
  /** Replaces the live lines; does nothing without a terminal. */
  live(text: string): void;
  /** Removes the live lines. */
  close(): void;
}

/** Opens the screen of a command on stderr. */
export async function openScreen({
  isTty,
  note,
  color,
}: Pick<CliContext, 'isTty' | 'note' | 'color'>): Promise<Screen> {
  if (!isTty) return { line: note, live: () => undefined, close: () => undefined };
  const { createLogUpdate } = await import('log-update');
  const region = createLogUpdate(process.stderr);
  let shown = '';
  return {
    line(text) {
      region.clear();
      note(text);
      if (shown !== '') region(shown);
    },
    live(text) {
      shown = escapeHidden(text, color);
      region(shown);
    },
    close() {
      shown = '';
      region.clear();
      region.done();
    },
  };
}
