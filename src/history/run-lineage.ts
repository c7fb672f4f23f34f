import type { Client } from '@temporalio/client';
import { isObject, textField } from '../core/json.js';
import { describeRun, readRun, type RunReading } from './read-run.js';
import { readSegmentStart } from './segments.js';

/** Returns the name of a run's agent; empty if its input names none. Rejects with a `NoRunError`. */
export async function readAgentName(client: Client, id: string): Promise<string> {
  const { runId } = await describeRun(client, id);
  const { input } = (await readSegmentStart(client, id, runId)) ?? {};
  return isObject(input) ? textField(input, 'agent') : '';
}

/** Returns a run, the run that it was forked from, and so on, up to a run that the server does not keep. */
export async function readLineage(client: Client, id: string): Promise<readonly string[]> {
  const lineage: string[] = [];
  for (let run: string | undefined = id; run !== undefined && !lineage.includes(run);) {
    lineage.push(run);
    const reading: RunReading | null = await readRun(client, run).catch(() => null);
    run = reading?.view.state?.forkedFrom?.run;
  }
  return lineage;
}
