import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { historiesOf } from './histories.js';
import type { ChaosRun } from './traffic.js';
import type { World } from './world.js';

interface RunEvidence {
  readonly client: Client;
  readonly world: World;
  readonly runs: readonly ChaosRun[];
}

/**
 * Writes the evidence of the violations into the world's folder: the histories of their runs, what
 * the readers saw, the ledger, and the logs of the workers. Returns the folder.
 */
export async function keepEvidence(
  violations: readonly string[],
  { client, world, runs }: RunEvidence,
): Promise<string> {
  const folder = join(world.home, 'evidence');
  await mkdir(folder);
  const put = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);
  await put('violations.txt', violations.join('\n'));
  const { paid, put: posted, refused } = world.ledger;
  const keys = [...posted].map(([at, found]) => [at, [...found]] as const);
  const ledger = { paid: Object.fromEntries(paid), put: Object.fromEntries(keys), refused };
  await put('ledger.json', JSON.stringify(ledger, null, 2));
  for (const [index, { log }] of world.workers.entries()) {
    await put(`worker-${index}.log`, log.join(''));
  }
  for (const run of runs.filter(({ id }) => violations.some((one) => one.startsWith(`${id}:`)))) {
    await put(`${run.id}.json`, JSON.stringify(run, null, 2));
    const histories = await historiesOf(client, run.id).catch(() => []);
    for (const [segment, history] of histories.entries()) {
      await put(`${run.id}.${segment}.history.json`, historyToJSON(history));
    }
  }
  return folder;
}
