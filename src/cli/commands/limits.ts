import { setLimits } from '../../updates/control.js';
import { LIMIT_NAMES, type LimitSet, type Limits } from '../../core/definition/definition.js';
import { checkLimits } from '../../core/input/check-limits.js';
import type { Request } from '../../core/requests/request.js';
import { readRun, type RunReading } from '../../history/read-run.js';
import { limitFlag } from '../../core/requests/commands.js';
import type { EffectiveLimits } from '../../core/state.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { parseNumberOrNone } from '../input/option-parsers.js';
import { osUser } from '../input/os-user.js';
import { requireOpenRun, type OpenedRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { viewedRequests } from '../requests/open-requests.js';
import { withWorker } from '../hosting/with-worker.js';
import { columns } from '../format/table.js';

export interface LimitsOptions extends LimitSet {
  readonly id: string;
  /** Apply the limits to the whole run instead of to each turn. */
  readonly run?: boolean;
}

/** `limits ID`: shows the limits of a run, or replaces those that the options set. */
export const limits: Command<LimitsOptions> = {
  declare: (entry) =>
    entry
      .argument('<id>', 'the run; each limit takes a number, or none')
      .option('--steps <n>', 'model calls', parseNumberOrNone)
      .option('--tool-calls <n>', 'executed tool calls', parseNumberOrNone)
      .option('--tokens <n>', 'input and output tokens', parseNumberOrNone)
      .option('--cost-usd <n>', 'US dollars', parseNumberOrNone)
      .option('--wall-ms <n>', 'milliseconds', parseNumberOrNone)
      .option('--depth <n>', 'nested agent calls', parseNumberOrNone)
      .option('--run', 'apply the limits to the whole run; default: to each turn'),
  run: showOrSetLimits,
};

async function showOrSetLimits(context: CliContext, options: LimitsOptions): Promise<ExitCode> {
  const { id } = options;
  const requested = limitsOf(options);
  const opened = await requireOpenRun(context, id);
  const { client, run } = opened;
  const set = requested && {
    decision: 'limits',
    send: () => setLimits(client, id, requested, { by: osUser() }),
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

/**
 * Returns the limits that the options set, or null if they set none. Throws a `UsageError` before
 * anything is opened if the run would reject them.
 */
function limitsOf(options: LimitsOptions): Limits | null {
  const named = LIMIT_NAMES.filter((name) => options[name] !== undefined);
  if (named.length === 0) {
    if (!options.run) return null;
    throw new UsageError(
      `--run: expected a limit, got none; name one, such as ${limitFlag('steps')} 500 --run`,
    );
  }
  const set = Object.fromEntries(named.map((name) => [name, options[name]]));
  const requested = options.run ? { run: set } : set;
  const problem = checkLimits(requested, 'limits');
  if (problem === null) return requested;
  throw new UsageError(textInFlags(problem));
}

function rethrowInFlags(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  throw new Error(textInFlags(error.message), { cause: error });
}

/** Replaces field names by flags: `limits.run.costUsd` by `--cost-usd`. */
function textInFlags(text: string): string {
  return LIMIT_NAMES.reduce(
    (result, name) =>
      result.replaceAll(new RegExp(`\\blimits\\.(?:run\\.)?${name}\\b`, 'g'), limitFlag(name)),
    text,
  ).replace('null for none', 'none');
}

function lines({ turn, run }: EffectiveLimits): readonly string[] {
  return columns([
    ['LIMIT', 'EACH TURN', 'WHOLE RUN'],
    ...LIMIT_NAMES.map((name) => [
      limitFlag(name).slice(2),
      formatLimit(turn[name]),
      formatLimit(run[name]),
    ]),
  ]);
}

function formatLimit(limit: number | null | undefined): string {
  return limit === undefined || limit === null ? 'none' : String(limit);
}
