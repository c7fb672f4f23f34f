import { Option } from 'commander';
import { resolveCall } from '../../updates/control.js';
import type { Resolution } from '../../core/calls/call-result.js';
import type { Json } from '../../core/json.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { parseJsonOption } from '../input/option-parsers.js';
import { osUser } from '../input/os-user.js';
import { openLivingRun, requireWorker } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';

export interface ResolveOptions {
  readonly id: string;
  readonly call: string;
  readonly as: Resolution['as'];
  /** Parsed JSON. */
  readonly result?: Json;
  /** The hash of the changed tool that is accepted. */
  readonly definition?: string;
}

/** `resolve ID CALL`: records a person's decision about a call. The first decision wins. */
export const resolve: Command<ResolveOptions> = {
  declare: (entry) =>
    entry
      .argument('<id>', 'the run')
      .argument('<call>', 'the call, as status shows it')
      .addOption(
        new Option('--as <decision>', 'what happened to the call, or what to do with it')
          .choices(['happened', 'retry', 'abandon', 'accept'])
          .makeOptionMandatory(),
      )
      .option('--result <json>', 'what the call returned; only with --as happened', parseJsonOption)
      .option('--definition <hash>', 'the tool form to accept; only with --as accept'),
  async run(context, options) {
    const { id, call, as, result, definition } = options;
    if (result !== undefined && as !== 'happened') {
      throw new UsageError(`--result: expected --as happened, got --as ${as}; leave --result out`);
    }
    if ((as === 'accept') !== (definition !== undefined)) {
      throw new UsageError(
        as === 'accept'
          ? '--definition: expected the hash that status shows, got none; --as accept needs it'
          : `--definition: expected --as accept, got --as ${as}; leave --definition out`,
      );
    }
    const opened = await openLivingRun(context, id);
    await requireWorker(context, opened, 'resolve');
    const resolution = {
      call,
      as,
      ...(result !== undefined && { result }),
      ...(definition !== undefined && { definition }),
    };
    await resolveCall(opened.client, id, resolution, { by: osUser() });
    const follow = await nextCommandFor(context, opened.run, ['attach', id]);
    context.note(
      `Call ${visible(call)} is resolved as ${as}; the run resumes. Follow it with: ${follow}`,
    );
    if (context.options.json) context.out(JSON.stringify({ id, call, as, resolved: true }));
    return EXIT.completed;
  },
};
