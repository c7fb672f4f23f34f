import type { PerdureClient } from 'perdure';

/** Creates the schedule: at three in the morning, and not while the report before is still written. */
export async function scheduleReport(client: PerdureClient, id = 'nightly-report'): Promise<void> {
  await client.schedule.create({
    id,
    cron: '0 3 * * *',
    agent: 'reporter',
    message: 'Report on the last day.',
    // Nobody is there at night: nothing is asked, and a model that is down does not block the run.
    unattended: 'deny',
    modelAttempts: 5,
    tags: ['nightly'],
  });
}
