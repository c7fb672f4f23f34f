import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { PerdureClient } from '../src/client/client-types.js';
import type { Ledger } from './ledger.js';

/** How long the scheduled runs may take to end after the last fault. */
const PATIENCE_MS = 120_000;
/** Each run takes longer than its schedule's interval, at times. */
const SCHEDULES = [
  { id: 'ticks-skip', everyMs: 2_000, overlap: 'skip' },
  { id: 'ticks-all', everyMs: 5_000, overlap: 'allow_all' },
] as const;

/** Creates the schedules, whose runs post to the ledger once each. */
export async function createSchedules(perdure: PerdureClient): Promise<void> {
  for (const { id, everyMs, overlap } of SCHEDULES) {
    await perdure.schedule.create({
      id,
      every: everyMs,
      overlap,
      agent: 'ticker',
      message: 'tick',
    });
  }
}

interface ScheduledRun {
  readonly id: string;
  readonly status: string;
  /** The tick that it was started for, Unix time in ms. */
  readonly due: number;
  readonly startedAt: number;
  readonly endedAt: number;
}

/**
 * Ends the schedules, waits for their runs, and returns what is wrong: each tick starts exactly one
 * run, as the overlap policy says, and each run ends and posts once.
 */
export async function scheduleFaults(
  perdure: PerdureClient,
  { client, ledger }: { readonly client: Client; readonly ledger: Ledger },
): Promise<{ readonly runs: number; readonly faults: readonly string[] }> {
  const faults: string[] = [];
  let count = 0;
  for (const { id, everyMs, overlap } of SCHEDULES) {
    await perdure.schedule.pause(id);
    const runs = await endedRuns(client, id);
    count += runs.length;
    const { fired, missed } = await perdure.schedule.describe(id);
    const report = (text: string): void => void faults.push(`schedule ${id}: ${text}`);
    if (fired !== runs.length) report(`it fired ${fired} times, and started ${runs.length} runs`);
    if (missed > 0) report(`it missed ${missed} ticks`);
    for (const [index, run] of runs.entries()) {
      const posted = ledger.put.get(`tick/${run.id}/0`)?.size ?? 0;
      if (run.status !== 'COMPLETED') report(`I12: ${run.id} is ${run.status}`);
      else if (posted !== 1) report(`I2: ${run.id} posted under ${posted} keys`);
      if (run.due % everyMs !== 0) report(`${run.id} was started off its grid`);
      const before = runs[index - 1];
      if (before === undefined) continue;
      if (before.due === run.due) report(`${before.id} and ${run.id} are for one tick`);
      if (overlap === 'skip' && run.startedAt < before.endedAt)
        report(`${run.id} was started while ${before.id} was open`);
      if (overlap === 'allow_all' && run.due !== before.due + everyMs)
        report(`no run between ${before.id} and ${run.id}`);
    }
  }
  return { runs: count, faults };
}

/** Waits until all runs of a schedule have ended. Returns them in the order of their ticks. */
async function endedRuns(client: Client, schedule: string): Promise<readonly ScheduledRun[]> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const runs: ScheduledRun[] = [];
    const query = `TemporalScheduledById = '${schedule}'`;
    for await (const found of client.workflow.list({ query })) {
      const { workflowId, runId, status, startTime, closeTime, searchAttributes } = found;
      // Segments of a run have the run's tick; only the newest counts.
      if (status.name === 'CONTINUED_AS_NEW') continue;
      const [due] = searchAttributes['TemporalScheduledStartTime'] ?? [];
      runs.push({
        id: workflowId === '' ? runId : workflowId,
        status: status.name,
        due: due instanceof Date ? due.getTime() : Number.NaN,
        startedAt: startTime.getTime(),
        endedAt: closeTime?.getTime() ?? Infinity,
      });
    }
    const areOver = runs.every(({ status }) => status !== 'RUNNING');
    if (areOver || performance.now() > until) return runs.toSorted((a, b) => a.due - b.due);
    await pause(1_000);
  }
}
