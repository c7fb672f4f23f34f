import type { ScheduleChanges } from '../../client/schedule/update.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { noteSchedule } from './note-schedule.js';
import {
  checkNamedAgent,
  declareSchedule,
  namedFields,
  withSchedules,
  type ScheduleCommandOptions,
} from './schedules.js';

export interface ScheduleUpdateOptions extends ScheduleCommandOptions {
  /** Names of options that are removed, without dashes. */
  readonly without?: readonly string[];
}

/** The options that can be removed, by flag. */
const REMOVABLE: Readonly<Record<string, keyof ScheduleChanges>> = {
  agent: 'agent',
  'time-zone': 'timeZone',
  to: 'to',
  overlap: 'overlap',
  'catch-up': 'catchUp',
  tag: 'tags',
  limit: 'limits',
  unattended: 'unattended',
  archive: 'archive',
  'model-attempts': 'modelAttempts',
  context: 'context',
  by: 'by',
  arg: 'args',
};

/** `schedule update ID`: changes the fields that the options set, and keeps the rest. */
export const updateSchedule: Command<ScheduleUpdateOptions> = {
  declare: (entry) => declareSchedule(entry, 'without'),
  async run(context, options) {
    const { id, without = [] } = options;
    const changes = { ...namedFields(options), ...removed(without) };
    if (Object.keys(changes).length === 0) {
      throw new UsageError('update: expected a change, got none; give for example --every 1h');
    }
    await checkNamedAgent(context, options);
    return await withSchedules(context, async (schedules) => {
      await schedules.update(id, changes);
      context.note(`Schedule ${visible(id)} is updated; the next firing uses the changes.`);
      await noteSchedule(context, schedules, id);
      return EXIT.completed;
    });
  },
};

function removed(names: readonly string[]): ScheduleChanges {
  const entries = names.map((name) => {
    const field = Object.hasOwn(REMOVABLE, name) ? REMOVABLE[name] : undefined;
    if (field !== undefined) return [field, null] as const;
    throw new UsageError(
      `--without: expected one of ${Object.keys(REMOVABLE).join(', ')}; got ${visible(name)}`,
    );
  });
  return Object.fromEntries(entries);
}
