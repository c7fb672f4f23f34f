import { setLimits } from '../../updates/control.js';
import type { LimitName, LimitSet, Limits } from '../../core/definition/definition.js';
import { checkLimits } from '../../core/input/input.js';
import { LIMIT_NAMES } from '../../core/limits.js';
import type { EffectiveLimits } from '../../core/state.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { osUser } from '../input/os-user.js';
import { openLivingRun } from '../decision.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { columns } from '../format/table.js';

export interface LimitsOptions extends LimitSet {
  readonly id: string;
  /** They are the whole run's instead of each turn's. */
  readonly run?: boolean;
}

/** `limits ID`: shows the limits of a run, or replaces those that are named. */
export const limits: Command<LimitsOptions> = async (context, options) => {
  const { id } = options;
  const wanted = limitsOf(options);
  const opened = await openLivingRun(context, id);
  const { client, run } = opened;
  const set = wanted && {
    decision: 'limits',
    say: () => setLimits(client, id, wanted, { by: osUser() }),
  };
  const now =
    set === null
      ? (run.view.state?.config.limits ?? null)
      : await withWorker(context, opened, set).catch(inFlags);
  if (now === null) {
    context.note(`Run ${visible(id)} has not loaded its agent yet, so its limits are not known.`);
  } else if (!context.options.json) for (const line of lines(now)) context.out(line);
  if (wanted !== null) context.note(`Run ${visible(id)} keeps to these limits from now on.`);
  if (context.options.json) context.out(JSON.stringify({ id, limits: now }));
  return EXIT.completed;
};

/** Checked before anything is opened; the run would refuse the same. Null: none is named. */
function limitsOf(options: LimitsOptions): Limits | null {
  const named = LIMIT_NAMES.filter((name) => options[name] !== undefined);
  if (named.length === 0) {
    if (!options.run) return null;
    throw new UsageError(
      `--run says whose limit it is; name one, such as ${flagOf('steps')} 500 --run`,
    );
  }
  const set = Object.fromEntries(named.map((name) => [name, options[name]]));
  const wanted = options.run ? { run: set } : set;
  const problem = checkLimits(wanted, 'limits');
  if (problem === null) return wanted;
  throw new UsageError(textInFlags(problem));
}

function inFlags(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  throw new Error(textInFlags(error.message), { cause: error });
}

/** `limits.run.costUsd` is what people have typed as `--cost-usd`. */
function textInFlags(text: string): string {
  return LIMIT_NAMES.reduce(
    (so, name) => so.replaceAll(new RegExp(`\\blimits\\.(?:run\\.)?${name}\\b`, 'g'), flagOf(name)),
    text,
  ).replace('null for none', 'none');
}

/** `costUsd` → `--cost-usd`. */
export function flagOf(name: LimitName): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function lines({ turn, run }: EffectiveLimits): readonly string[] {
  return columns([
    ['LIMIT', 'EACH TURN', 'WHOLE RUN'],
    ...LIMIT_NAMES.map((name) => [flagOf(name).slice(2), shown(turn[name]), shown(run[name])]),
  ]);
}

function shown(limit: number | null | undefined): string {
  return limit === undefined || limit === null ? 'none' : String(limit);
}
