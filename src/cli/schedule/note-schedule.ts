import type { Schedules } from '../../client/schedule/methods.js';
import type { RecordedTimes } from '../../client/schedule/view.js';
import { formatInterval } from '../../core/text/duration.js';
import { visible } from '../../core/text/summaries.js';
import type { CliContext } from '../context.js';
import { formatDateTime } from '../format/format-time.js';

/** Notes when a schedule fires next, and prints it for programs. */
export async function noteSchedule(
  context: CliContext,
  schedules: Schedules,
  id: string,
): Promise<void> {
  const details = await schedules.describe(id);
  const [next] = details.nextAt;
  if (details.paused) context.note('It is paused.');
  else if (next !== undefined) {
    context.note(`It fires ${timesText(details)}, next at ${formatDateTime(Date.parse(next))}.`);
  }
  if (context.options.json) context.out(JSON.stringify(details));
}

/** Returns the times of a schedule as text: `every hour`, `0 9 * * * (Europe/Berlin)`. */
export function timesText({ cron, everyMs, timeZone }: RecordedTimes): string {
  if (cron === undefined) return formatInterval(everyMs ?? 0);
  return timeZone === undefined ? visible(cron) : `${visible(cron)} (${visible(timeZone)})`;
}
