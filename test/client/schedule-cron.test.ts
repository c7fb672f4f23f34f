import { expect, test } from 'vitest';
import { cronProblem } from '../../src/client/schedule/options.js';

test.each([
  ['0 0 9 * * MON 2030', 'of which it has 7'],
  ['* * * * * *', 'give every: "10 seconds"'],
  ['*/15 * * * * *', 'give every: "15 seconds"'],
  ['0 9 * *', 'expected five fields (minute, hour,'],
  ['@every 2h', 'for an interval, give every: "2h"'],
  ['@reboot', 'or one of @hourly, @daily, @midnight, @weekly'],
  ['CRON_TZ=Europe/Berlin 0 9 * * *', 'give timeZone "Europe/Berlin" instead'],
  ['0 9 * * * # early', 'without a comment; omit it'],
  ['0 9 31 2 *', 'because it never fires; correct the day of month 31 or the month 2'],
  ['0 9 31 FEB,4-6/2 MON', 'it never fires'],
  ['0 9 30,31 feb *', 'it never fires'],
])('%s is refused', (cron, problem) => {
  expect(cronProblem(cron)).toContain(problem);
});

test.each([
  '0 9 29 2 *',
  '0 9 31 * MON',
  '0 9 */31 JAN-mar *',
  '0 9 30 2/2 *',
  '@midnight',
  '0 9 L * *',
])('%s is left to the server', (cron) => {
  expect(cronProblem(cron)).toBeNull();
});
