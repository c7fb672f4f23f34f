import { setLimits } from '../../updates/control.js';
import { LIMIT_NAMES, type LimitName, type Limits } from '../../core/definition/definition.js';
import type { EffectiveLimits } from '../../core/state.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { formatDuration } from '../format/format.js';
import { deciderName } from '../input/os-user.js';
import { requireOpenRun, type OpenedRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { viewedRequests } from '../requests/open-requests.js';
import type { Request } from '../../core/requests/request.js';
import { readRun, type RunReading } from '../../history/read-run.js';
import { limitWord } from '../../core/requests/commands.js';
import { withWorker } from '../hosting/with-worker.js';
import { columns } from '../format/table.js';

export interface LimitsOptions {
  readonly id: string;
  /** The limits to set; absent: show those in force. */
  readonly limit?: Limits;
  readonly by?: string;
}

/** `limits ID`: shows the limits of a run, or replaces those that `--limit` sets. */
export const limits: Command<LimitsOptions> = {
  declare: (entry) => withOptions(entry.argument('<id>', 'the run'), 'limit', 'by'),
  run: showOrSetLimits,
};

async function showOrSetLimits(context: CliContext, options: LimitsOptions): Promise<ExitCode> {
  const { id, limit: requested = null } = options;
  const by = deciderName(options.by);
  const opened = await requireOpenRun(context, id);
  const { client, run } = opened;
  const set = requested && {
    decision: 'limits',
    send: () => setLimits(client, id, requested, { by }),
  };
  const effective =
    set === null
      ? (run.view.state?.config.limits ?? null)
      : await withWorker(context, opened, set).catch(rethrowInFlags);
  if (effective === null) {
    context.note(`Run ${visible(id)} has not loaded its agent yet, so its limits are unknown.`);
  } else if (!context.options.json) for (const line of lines(effective)) context.out(line);
  if (requested !== null) {
    context.note(`Run ${visible(id)} has these limits from now on.`);
    await noteWaiting(context, opened);
  }
  if (context.options.json) context.out(JSON.stringify({ id, limits: effective }));
  return EXIT.completed;
}

/** Notes what a run that waited for a higher limit does now. */
async function noteWaiting(context: CliContext, { client, run }: OpenedRun): Promise<void> {
  const { id } = run;
  const askedIn = (view: RunReading['view']): Request | undefined =>
    viewedRequests(view, id).find(({ kind }) => kind === 'limit');
  if (askedIn(run.view) === undefined) return;
  const request = askedIn((await readRun(client, id)).view);
  if (request === undefined) {
    const follow = await nextCommandFor(context, run, ['attach', id]);
    context.note(`It no longer waits for a higher limit. Follow it with: ${follow}`);
    return;
  }
  const see = await nextCommandFor(context, run, ['inbox', id, request.id]);
  context.note(
    `It still waits at its limit: ${request.shown}. Set a higher one, or decide with the commands shown by: ${see}`,
  );
}

function rethrowInFlags(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  throw new Error(textInFlags(error.message), { cause: error });
}

/** Replaces field names by those of `--limit`: `limits.run.costUsd` by `--limit run.cost-usd`. */
function textInFlags(text: string): string {
  const named = LIMIT_NAMES.reduce(
    (result, name) =>
      result.replaceAll(
        new RegExp(`\\blimits\\.(run\\.)?${name}\\b`, 'g'),
        (_, run = '') => `--limit ${run}${limitWord(name)}`,
      ),
    text,
  );
  return named.replace('null for none', 'none');
}

function lines({ turn, run }: EffectiveLimits): readonly string[] {
  return columns([
    ['LIMIT', 'EACH TURN', 'WHOLE RUN'],
    ...LIMIT_NAMES.map((name) => [
      limitWord(name),
      formatLimit(name, turn[name]),
      formatLimit(name, run[name]),
    ]),
  ]);
}

function formatLimit(name: LimitName, limit: number | null | undefined): string {
  if (limit === undefined || limit === null) return 'none';
  return name === 'wallMs' ? formatDuration(limit, { as: 'exact' }) : String(limit);
}
