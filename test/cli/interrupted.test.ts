import { expect, test } from 'vitest';
import type { CliContext } from '../../src/cli/context.js';
import { reportInterrupted } from '../../src/cli/reports/report-run.js';

test('an interrupt names the program that continues a run of another configuration', async () => {
  const notes: string[] = [];
  const note = (line: string) => notes.push(line);
  const context = { options: {}, env: {}, note, taskQueue: async () => 'q' } as unknown;
  const left = { id: 'x', runId: 'f', taskQueue: 'q', last: null, wasHosting: false };
  const lack = 'This configuration does not have agent "k": start the program that has it';
  await reportInterrupted(context as CliContext, { ...left, lack });
  await reportInterrupted(context as CliContext, { ...left, lack: null });
  expect(notes).toEqual([
    `Interrupted: run x is still open. ${lack}.`,
    expect.stringMatching(/Follow it with: .* attach x$/),
  ]);
});
