import { collectValues, parseDurationOption } from './option-parsers.js';

/** The options of schedules. */
export const SCHEDULE_OPTIONS = {
  cron: {
    flags: '--cron <expression>',
    text: 'five fields, such as "0 9 * * MON-FRI", or @daily',
  },
  every: {
    flags: '--every <duration>',
    text: 'instead of --cron: such as 30s, hour, or "2 hours"',
    parse: parseDurationOption,
  },
  timeZone: {
    flags: '--time-zone <name>',
    text: 'time zone of --cron, such as Europe/Berlin; default: UTC',
  },
  to: {
    flags: '--to <run>',
    text: 'send the message to this open run; default: each firing starts a run',
  },
  overlap: {
    flags: '--overlap <policy>',
    text: 'if an earlier firing has not ended; default: skip, of trigger allow_all',
    choices: ['skip', 'buffer_one', 'buffer_all', 'cancel_other', 'allow_all'],
  },
  catchUp: {
    flags: '--catch-up <duration>',
    text: 'how late a missed firing still happens after the server was down; default: a year',
    parse: parseDurationOption,
  },
  paused: { flags: '--paused', text: 'create it paused; see schedule resume' },
  without: {
    flags: '--without <option>',
    text: 'remove an option of the schedule, such as overlap or tag; may be repeated',
    parse: collectValues,
  },
} as const;
