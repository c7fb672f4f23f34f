import type { Client } from '@temporalio/client';
import type { Archive } from '../storage/archive.js';
import { readRun, type RunReading } from './read-run.js';

/**
 * Returns a run, the run from which it was forked, and so on, up to a run that is no longer kept.
 */
export async function readLineage(
  client: Client,
  id: string,
  archive: Archive,
): Promise<readonly string[]> {
  const lineage: string[] = [];
  for (let run: string | undefined = id; run !== undefined && !lineage.includes(run);) {
    lineage.push(run);
    const reading: RunReading | null = await readRun(client, run, { archive }).catch(() => null);
    run = reading?.view.state?.forkedFrom?.run;
  }
  return lineage;
}
