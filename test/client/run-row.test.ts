import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { outcomeStatus } from '../../src/client/run-row.js';
import { COMPLETE_REASONS, FAIL_REASONS, STOP_REASONS } from '../../src/core/transcript/outcome.js';

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

test('README has the reasons of each status', async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  for (const [status, reasons] of Object.entries(REASONS)) {
    const row = new RegExp(`^\\| \`${status}\` .*$`, 'm').exec(readme)?.[0] ?? '';
    expect(reasons.filter((reason) => !row.includes(`\`${reason}\``))).toEqual([]);
  }
});
