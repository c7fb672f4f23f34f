import type { ScheduleDetails } from '../../client/schedule/view.js';
import { actorText, visible } from '../../core/state/summaries.js';
import { type Command, EXIT } from '../context.js';
import { dataPalette, entries, formatCount, formatDateTime } from '../format/format.js';
import { ID, leftOut, timesText } from './commands.js';
import { withSchedules } from './with-schedules.js';

/** `schedule show ID`: shows all of a schedule: what it sends, when, and how its firings went. */
export const showSchedule: Command<{ readonly id: string }> = {
  declare: (entry) => entry.argument(...ID),
  async run(context, { id }) {
    const details = await withSchedules(context, (schedules) => schedules.describe(id));
    if (context.options.json) context.out(JSON.stringify(details));
    else for (const line of scheduleLines(details, context)) context.out(line);
    return EXIT.completed;
  },
};

/** The most firings that are shown. */
const FIRINGS = 5;

/** Returns everything about a schedule, one fact per line. */
function scheduleLines(
  details: ScheduleDetails,
  context: Parameters<typeof dataPalette>[0],
): readonly string[] {
  const { id, givenId, agent, to, message, paused, note, overlap, settings } = details;
  const { nextAt, fired, buffered, running, beside, recent, failure } = details;
  const [next] = nextAt;
  const why = note === null ? '' : `: ${visible(note)}`;
  return entries(
    [
      one('schedule', visible(givenId ?? id)),
      one('state', `${paused ? 'paused' : 'active'}${why}`),
      one('agent', agent === null ? null : visible(agent)),
      one('to', to === null ? null : `run ${visible(to)}`),
      one('message', visible(message)),
      one('times', timesText(details)),
      one('next', paused || next === undefined ? null : timeOf(next)),
      one('overlap', overlap),
      {
        name: 'settings',
        lines: Object.entries(settings).map(([name, value]) =>
          name === 'by'
            ? `by: ${actorText({ by: String(value) })}`
            : visible(`${name}: ${JSON.stringify(value)}`),
        ),
      },
      one('fired', formatCount(fired, 'time')),
      one('left out', leftOut(details) === '-' ? null : leftOut(details)),
      one('waiting', buffered === 0 ? null : formatCount(buffered, 'firing')),
      { name: 'running', lines: [...running, ...beside].map((run) => visible(run)) },
      {
        name: 'last',
        lines: recent
          .slice(-FIRINGS)
          .toReversed()
          .map((firing) => `${timeOf(firing.firedAt)}  ${visible(firing.id)}`),
      },
      one('failed', failure === undefined ? null : visible(failure)),
    ],
    dataPalette(context),
  );
}

/** An entry of one line; none without a text. */
function one(name: string, text: string | null): { name: string; lines: readonly string[] } {
  return { name, lines: text === null ? [] : [text] };
}

function timeOf(iso: string): string {
  return formatDateTime(Date.parse(iso));
}
