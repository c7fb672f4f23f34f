import type { ScheduleOptions } from '../../client/schedule/options.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { noteSchedule } from './note-schedule.js';
import {
  checkNamedAgent,
  declareSchedule,
  namedFields,
  withSchedules,
  type ScheduleCommandOptions,
} from './schedules.js';

export interface ScheduleCreateOptions extends ScheduleCommandOptions {
  readonly paused?: boolean;
}

/** `schedule create ID MESSAGE…`: runs an agent on a cron expression or an interval. */
export const createSchedule: Command<ScheduleCreateOptions> = {
  declare: (entry) => declareSchedule(entry, 'paused'),
  async run(context, options) {
    const { id, paused } = options;
    await checkNamedAgent(context, options);
    const given = { message: '', ...namedFields(options), id, ...(paused && { paused }) };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `create` checks it
    const schedule = given as ScheduleOptions;
    return await withSchedules(context, async (schedules) => {
      await schedules.create(schedule);
      context.note(`Schedule ${visible(id)} is created.`);
      await noteSchedule(context, schedules, id);
      return EXIT.completed;
    });
  },
};
