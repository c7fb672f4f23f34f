import type { RunStatus, TranscriptPage, TranscriptRange } from '../../src/core/state/status.js';
import type { Message } from '../../src/core/transcript/messages.js';

/** What a run reports about itself at one moment. */
export interface RunAnswer {
  readonly status: RunStatus;
  /** The messages that the run holds in memory, side branches included. */
  readonly page: TranscriptPage;
}

/** Reads all pages of the messages that a run holds in memory. */
export async function wholeTranscript(
  read: (range: TranscriptRange) => Promise<TranscriptPage>,
): Promise<TranscriptPage> {
  const messages: Message[] = [];
  for (;;) {
    const from = (messages.at(-1)?.n ?? -1) + 1;
    const page = await read({ from, side: true });
    messages.push(...page.messages);
    const isWhole = page.messages.length === 0 || messages.at(-1)?.n === page.total - 1;
    if (isWhole) return { messages, total: page.total };
  }
}
