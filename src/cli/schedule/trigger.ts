import type { Schedules } from '../../client/schedule/methods.js';
import type { Overlap } from '../../client/schedule/options.js';
import type { TriggerResult } from '../../client/schedule/trigger.js';
import type { ScheduleDetails } from '../../client/schedule/view.js';
import { visible } from '../../core/state/summaries.js';
import { describeRun } from '../../history/read-run.js';
import { type CliContext, type Command, EXIT } from '../context.js';
import {
  type WorkerPresence,
  noteMissingWorker,
  readWorkerPresence,
} from '../hosting/server-notes.js';
import { withOptions } from '../input/options.js';
import { workerHint } from '../open-run.js';
import { nextCommandAbout, nextCommandOf } from '../reports/next-command.js';
import { ID, report } from './commands.js';
import { closedTarget } from './target.js';
import { withSchedules } from './with-schedules.js';

interface ScheduleTriggerOptions {
  readonly id: string;
  readonly overlap?: Overlap;
}

/** A schedule before and after a trigger. */
interface Triggered extends TriggerResult {
  readonly before: ScheduleDetails;
  readonly after: ScheduleDetails;
  readonly overlap: ScheduleDetails['overlap'];
  /** What becomes of its message, if it sends to a run that was not open before; else null. */
  readonly closed: string | null;
}

/** `schedule trigger ID`: fires a schedule now, even if it is paused. */
export const triggerSchedule: Command<ScheduleTriggerOptions> = {
  declare: (entry) => withOptions(entry.argument(...ID), 'overlap'),
  async run(context, { id, overlap }) {
    const triggered = await withSchedules(context, async (schedules) => {
      return await trigger(context, { schedules, id, given: overlap });
    });
    const { firing = null, run, replaces } = triggered ?? {};
    const seen = { ...(run !== undefined && { run }), ...(replaces && { replaces }) };
    const fields = { triggered: firing !== 'skipped', firing, ...seen };
    const missing = triggered && (await missingWorker(context, triggered.after).catch(() => null));
    const hasWorker = missing === null;
    report(context, { id, text: firingText(context, { id, triggered, hasWorker }), fields });
    if (missing !== null) noteMissingWorker(context, missing.presence, missing.hint);
    const closed = triggered?.closed ?? null;
    if (closed !== null && firing !== 'skipped')
      context.note(closed.replace(/^./, (first) => first.toUpperCase()));
    return firing === 'skipped' ? EXIT.failed : EXIT.completed;
  },
};

/** Returns that no worker serves the newest firing of a schedule, and how to start one; null if one seems to. */
async function missingWorker(
  context: CliContext,
  { agent, recent, running }: ScheduleDetails,
): Promise<{ readonly presence: WorkerPresence; readonly hint: string } | null> {
  const newest = recent.at(-1)?.id ?? running.at(-1);
  if (newest === undefined) return null;
  const client = await context.client();
  const { taskQueue } = await describeRun(client, newest);
  const presence = await readWorkerPresence(client, taskQueue);
  if (presence.isUp) return null;
  return { presence, hint: await workerHint(context, { agent: agent ?? '', taskQueue }) };
}

interface TriggerRequest {
  readonly schedules: Schedules;
  readonly id: string;
  readonly given: Overlap | undefined;
}

/**
 * Triggers a schedule, and reads it before and after. Null if the schedule cannot be read here; it is
 * triggered nevertheless.
 */
async function trigger(
  context: CliContext,
  { schedules, id, given }: TriggerRequest,
): Promise<Triggered | null> {
  const read = async () => await schedules.describe(id).catch(() => null);
  const before = await read();
  const closed =
    before === null || before.to === null
      ? null
      : await closedTarget(context, { id, to: before.to, agent: before.agent }).catch(() => null);
  const result = await schedules.trigger(id, given === undefined ? {} : { overlap: given });
  const after = await read();
  if (before === null || after === null) return null;
  return { before, after, overlap: given ?? before.overlap, closed, ...result };
}

interface Fired {
  readonly id: string;
  readonly triggered: Triggered | null;
  /** Whether a worker seems to serve the schedule. Without one, a further run would not begin, either. */
  readonly hasWorker: boolean;
}

function firingText(context: CliContext, { id, triggered, hasWorker }: Fired): string {
  const list = nextCommandOf(context, ['schedule', 'list']);
  if (triggered === null) return `fires now. See its last firing with: ${list}`;
  const { before, after, overlap, firing } = triggered;
  if (firing === 'skipped') {
    const skipped = `is not fired: the firing was skipped, because ${skippedFor(triggered)}.`;
    if (!hasWorker) return skipped;
    const beside = nextCommandAbout(context, ['schedule trigger', id, '--overlap', 'allow_all']);
    return `${skipped} Fire it beside that with: ${beside}`;
  }
  if (firing === 'waits') return waitingText(triggered);
  const newest = after.recent.at(-1)?.id;
  // The time of a firing, in seconds, is a part of the id of its run.
  const isTwice = firing === 'fired' && before.recent.some(({ id: run }) => run === newest);
  const fires = isTwice
    ? 'has fired within this second already.'
    : `fires now${firing === null ? unlessText(after, overlap) : ''}.`;
  const { to } = after;
  if (to !== null) {
    return `${fires} It sends its message to run ${visible(to)}. See whether it was sent with: ${list}`;
  }
  const run = firing === 'fired' ? newest : undefined;
  return run === undefined
    ? `${fires} List its runs with: ${nextCommandOf(context, ['list', '--id-prefix', id])}`
    : `${fires} Its run is ${visible(run)}; follow it with: ${nextCommandAbout(context, ['attach', run])}`;
}

/** Returns what may have kept a schedule from firing, if it was not seen to fire. */
function unlessText(after: ScheduleDetails, overlap: Triggered['overlap']): string {
  const why = overlap === 'allow_all' ? '' : ` or ${earlierOf(after).is} not ended`;
  return `, unless it has fired within this second${why}`;
}

/** Returns the earlier firing as the beginning of a sentence, which `ended` completes. */
function earlierOf({ to, running }: ScheduleDetails): { readonly is: string } {
  const noun = to === null ? 'run' : 'message';
  const [run] = running;
  return { is: run === undefined ? `an earlier ${noun} has` : `${noun} ${visible(run)} has` };
}

/** Returns the details that name the earlier firing: afterwards, the new one may already run. */
function withEarlier({ before, after }: Triggered): ScheduleDetails {
  return before.running.length > 0 ? before : after;
}

function skippedFor(triggered: Triggered): string {
  const { before, overlap } = triggered;
  const why = `${earlierOf(withEarlier(triggered)).is} not ended`;
  const isFull = overlap === 'buffer_one' && before.buffered > 0;
  return isFull ? `${why} and another firing waits for its end` : why;
}

function waitingText(triggered: Triggered): string {
  const { before, overlap, replaces } = triggered;
  const { is } = earlierOf(withEarlier(triggered));
  const instead = replaces
    ? ` It takes the place of the ${before.buffered === 1 ? 'firing' : `${before.buffered} firings`} that waited for that.`
    : '';
  if (overlap === 'cancel_other')
    return `fires when ${is} ended, which is being canceled.${instead}`;
  if (before.buffered === 0) return `fires when ${is} ended.`;
  return `fires when ${is.replace(/ has$/, '')} and the firings before it have ended.`;
}
