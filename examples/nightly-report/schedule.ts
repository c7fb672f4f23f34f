import { createClient } from 'perdure';
import { scheduleReport } from './schedule-report.js';

await using client = await createClient();
await scheduleReport(client);
console.log(await client.schedule.describe('nightly-report'));
