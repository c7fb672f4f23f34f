import { resolveCall } from '../../updates/resolve.js';
import type { Resolution } from '../../core/calls/call-result.js';
import type { Json } from '../../core/json.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { osUser } from '../input/os-user.js';
import { requireWorker, openLivingRun } from '../decision.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { nextCommandFor } from '../open-run.js';

export interface ResolveOptions {
  readonly id: string;
  readonly call: string;
  readonly as: Resolution['as'];
  /** JSON, parsed. */
  readonly result?: Json;
  /** The form of a changed tool that is accepted. */
  readonly definition?: string;
}

/** `resolve ID CALL`: a person says what became of a call. The first decision wins. */
export const resolve: Command<ResolveOptions> = async (context, options) => {
  const { id, call, as, result, definition } = options;
  if (result !== undefined && as !== 'happened') {
    throw new UsageError(`--result: a call has one only --as happened, not --as ${as}`);
  }
  if ((as === 'accept') !== (definition !== undefined)) {
    throw new UsageError('--definition: it goes with --as accept, and names what the status shows');
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
  context.note(`${visible(call)} is resolved as ${as}; the run goes on. Follow it with: ${follow}`);
  if (context.options.json) context.out(JSON.stringify({ id, call, as, resolved: true }));
  return EXIT.completed;
};
