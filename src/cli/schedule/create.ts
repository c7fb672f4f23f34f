import type { ScheduleOptions } from '../../client/schedule/options.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { MODEL_ATTEMPTS } from '../input/shared-options.js';
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
  /** Deny every approval of its runs, because no person is there to decide. */
  readonly unattended?: boolean;
  readonly modelAttempts?: number;
}

/** `schedule create ID MESSAGE…`: runs an agent on a cron expression or an interval. */
export const createSchedule: Command<ScheduleCreateOptions> = {
  declare: (entry) =>
    declareSchedule(entry)
      .option('--paused', 'create it paused; see schedule resume')
      .option('--unattended', 'deny every approval of its runs: no person is there to decide')
      .option(...MODEL_ATTEMPTS),
  async run(context, options) {
    const { id, paused, unattended, modelAttempts } = options;
    await checkNamedAgent(context, options);
    const given = {
      message: '',
      ...namedFields(options),
      id,
      ...(paused && { paused }),
      ...(unattended && { unattended: 'deny' }),
      ...(modelAttempts !== undefined && { modelAttempts }),
    };
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
