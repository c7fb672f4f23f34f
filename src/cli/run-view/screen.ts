import type { CliContext } from '../context.js';
import { escapeHidden } from '../format/output.js';

/** Where progress is shown: lines that stay and, on a terminal, some that are overwritten. */
export interface Screen {
  line(text: string): void;
  /** Replaces what was live; does nothing where nobody watches. */
  live(text: string): void;
  /** Takes the live lines away. */
  close(): void;
}

export async function openScreen({
  isTty,
  say,
  color,
}: Pick<CliContext, 'isTty' | 'say' | 'color'>): Promise<Screen> {
  if (!isTty) return { line: say, live: () => undefined, close: () => undefined };
  const { createLogUpdate } = await import('log-update');
  const region = createLogUpdate(process.stderr);
  let shown = '';
  return {
    line(text) {
      region.clear();
      say(text);
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
