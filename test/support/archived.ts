import type { ArchivedRun } from '../../src/storage/archive.js';
import type { Message } from '../../src/core/transcript/messages.js';

export const archivedRun: ArchivedRun = {
  namespace: 'default',
  id: 'order-17',
  firstRunId: '0198a6c2-1111-7222-8333-944445555666',
};

/** Message `n`, the same in every process: long, and with what may disturb a reader of lines. */
export function archivedMessage(n: number): Message {
  const text = `${n} \u2028"\\\n😀 ${'x'.repeat((n % 7) * 1_000)}`;
  return { role: 'user', text, n, turn: 1, step: n, at: 1_800_000_000_000 + n };
}

/** The messages from number `from` on, before `to`. */
export function archivedMessages(from: number, to: number): readonly Message[] {
  return Array.from({ length: to - from }, (_, index) => archivedMessage(from + index));
}
