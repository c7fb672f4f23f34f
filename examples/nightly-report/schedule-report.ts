import type { PerdureClient } from 'perdure';

/** Creates the schedule: at three in the morning, unless the previous report is still running. */
export async function scheduleReport(client: PerdureClient, id = 'nightly-report'): Promise<void> {
  await client.schedule.create({
    id,
    cron: '0 3 * * *',
    agent: 'reporter',
    message: 'Report on the last day.',
    // At night, no one can approve a call or fix a model, so the run fails instead of waiting.
    unattended: 'deny',
    modelAttempts: 5,
    tags: ['nightly'],
  });
}
