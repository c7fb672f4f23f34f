import type { ScheduleRow } from '../../client/schedule/view.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { formatDateTime } from '../format/format-time.js';
import { columns } from '../format/table.js';
import { timesText } from './note-schedule.js';
import { withSchedules } from './schedules.js';

const HEADERS = ['ID', 'AGENT', 'TO', 'TIMES', 'NEXT', 'LAST', 'NOTE'];

/** `schedule list`: lists the schedules of the namespace. */
export const listSchedules: Command<object> = {
  async run(context) {
    const rows = await withSchedules(context, async (schedules) => await schedules.list());
    const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    if (context.options.json) context.out(JSON.stringify(sorted));
    else if (sorted.length === 0) context.note('There are no schedules.');
    else for (const line of columns([HEADERS, ...sorted.map(cells)])) context.out(line);
    for (const { id, unreadable } of sorted)
      if (unreadable !== undefined) context.note(`Schedule ${visible(id)}: ${unreadable}`);
    return EXIT.completed;
  },
};

function cells(row: ScheduleRow): readonly string[] {
  const { id, agent, to, paused, note, nextAt, recent } = row;
  const next = paused ? 'paused' : timeText(nextAt[0]);
  const texts = [agent, to].map((text) => visible(text ?? '-'));
  return [
    visible(id),
    ...texts,
    row.unreadable === undefined ? timesText(row) : '?',
    next,
    timeText(recent.at(-1)?.firedAt),
    visible(note ?? '-'),
  ];
}

function timeText(iso: string | undefined): string {
  return iso === undefined ? '-' : formatDateTime(Date.parse(iso));
}
