import { expect, test } from 'vitest';
import { erase } from '../../src/cli/commands/erase.js';
import { runInProcess } from '../support/in-process.js';

test('erase without a terminal says first that nothing is named, and only then asks for --yes', async () => {
  const place = { home: '/nonexistent' };
  await expect(runInProcess(erase, { ids: [] }, place)).rejects.toThrow(
    'ids: expected runs, a tag, an agent, a time, or orphans, got none; name what to erase',
  );
  await expect(runInProcess(erase, { ids: ['r'] }, place)).rejects.toThrow('--yes: expected');
});
