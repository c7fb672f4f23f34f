import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { outcomeStatus } from '../../src/client/run-row.js';
import {
  BLOCKED_REASONS,
  COMPLETE_REASONS,
  FAIL_REASONS,
  STOP_REASONS,
} from '../../src/core/transcript/outcome.js';

const REASONS = {
  completed: COMPLETE_REASONS,
  stopped: STOP_REASONS,
  cancelled: ['cancelled'],
  failed: FAIL_REASONS,
} as const;

test('each reason belongs to the status that has it', () => {
  for (const [status, reasons] of Object.entries(REASONS)) {
    expect(reasons.map((reason) => [reason, outcomeStatus(reason)])).toEqual(
      reasons.map((reason) => [reason, status]),
    );
  }
});

test('docs/errors.md has a cause for each reason of each status, and for each block', async () => {
  const page = await readFile(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  const rows = page.replaceAll(/ +/g, ' ').split('\n');
  for (const [status, reasons] of Object.entries(REASONS)) {
    const starts = reasons.map((reason) => `| \`${status}\` | \`${reason}\` | `);
    expect(starts.filter((start) => !rows.some((row) => row.startsWith(start)))).toEqual([]);
  }
  const blocks = BLOCKED_REASONS.map((reason) => `| \`${reason}\` | `);
  expect(blocks.filter((start) => !rows.some((row) => row.startsWith(start)))).toEqual([]);
});
