import { readdir, readFile } from 'node:fs/promises';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { describe, expect, test } from 'vitest';
import { outcomeOf, project } from '../src/client/projection.js';
import { readFact } from '../src/client/history-facts.js';
import { expectReplays } from './support/rig.js';

const FOLDER = new URL('./histories/', import.meta.url);
const FILES = (await readdir(FOLDER)).filter((name) => name.endsWith('.json'));

// Recorded by RECORD_HISTORIES=test/histories; what once ran must replay for ever.
describe('recorded histories', () => {
  test('are there', () => expect(FILES.length).toBeGreaterThan(5));

  test.each(FILES)('%s replays, and is retold to its end', async (name) => {
    const history = historyFromJSON(JSON.parse(await readFile(new URL(name, FOLDER), 'utf8')));
    await expectReplays(history, name);
    const { ended, state } = project((history.events ?? []).map(readFact));
    expect(ended).not.toBeNull();
    const outcome = ended && outcomeOf(ended);
    if (outcome !== null && outcome.reason !== 'input')
      expect(state?.turn.outcome).toEqual(outcome);
  });
});
