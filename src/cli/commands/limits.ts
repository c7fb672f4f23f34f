import { LIMIT_NAMES, type LimitSet, type Limits } from '../../core/definition/definition.js';
import { decidedText } from '../../client/requests.js';
import { toRunStatus } from '../../client/status.js';
import {
  limitAmount,
  limitWord,
  limitWords,
  roundedAmount,
} from '../../core/requests/limit-words.js';
import { limitText } from '../../core/requests/presentation.js';
import type { EffectiveLimits } from '../../core/state/state.js';
import { visible } from '../../core/state/summaries.js';
import type { Json } from '../../core/text/json.js';
import {
  DECISION_FIELDS,
  type DecisionKind,
  type LimitReached,
  type Request,
} from '../../core/transcript/request.js';
import { type RunReading, readRun } from '../../history/read-run.js';
import { setLimits } from '../../updates/decide.js';
import {
  type CliContext,
  type Command,
  CommandError,
  EXIT,
  type ExitCode,
  UsageError,
} from '../context.js';
import { columns, formatDateTime } from '../format/format.js';
import { withWorker } from '../hosting/with-worker.js';
import { deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import { type OpenedRun, openRun, requireOpenRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { submitDecision } from '../requests/decide.js';
import { chosenActions } from '../requests/prompt.js';
import { viewedRequests } from '../requests/show-request.js';
import { noteOf } from './approve.js';

export interface LimitsOptions {
  readonly id: string;
  /** The limits to set; absent: show those in force. */
  readonly limit?: Limits;
  /** By how much to raise limits. */
  readonly add?: Limits;
  readonly digest?: string;
  readonly by?: string;
}

/**
 * `limits ID`: shows the limits of a run, replaces those that `--limit` sets, or raises those that
 * `--add` names.
 */
export const limits: Command<LimitsOptions> = {
  declare: (entry) =>
    withOptions(entry.argument('<id>', 'the run'), 'limit', 'add', 'digest', 'by'),
  async run(context, options) {
    const { limit, add, digest } = options;
    if (add === undefined && digest !== undefined) {
      throw new UsageError('--digest: expected --add NAME=VALUE, got none; omit --digest');
    }
    if (add !== undefined && limit !== undefined) {
      throw new UsageError('--add: expected no --limit, got both; use one of them at a time');
    }
    return add === undefined
      ? await showOrSetLimits(context, options)
      : await addToLimits(context, options);
  },
};

async function showOrSetLimits(context: CliContext, options: LimitsOptions): Promise<ExitCode> {
  const { limit: requested = null } = options;
  const by = deciderName(options.by);
  const opened =
    requested === null
      ? await openRun(context, options.id, { archive: true })
      : await requireOpenRun(context, options.id);
  const { client, run } = opened;
  const { id } = run;
  const set = requested && {
    decision: 'limits',
    send: () => setLimits(client, id, requested, { by }),
  };
  const effective =
    set === null
      ? (run.view.state?.config.limits ?? null)
      : await withWorker(context, opened, set).catch(rethrowInFlags);
  if (effective === null) {
    const when =
      run.view.ended === null
        ? 'has not loaded its agent yet'
        : 'ended before it had loaded its agent';
    context.note(`Run ${visible(id)} ${when}, so its limits are unknown.`);
  } else if (!context.options.json) for (const line of lines(effective)) context.out(line);
  if (requested !== null) {
    context.note(`Run ${visible(id)} has these limits from now on.`);
    await noteWaiting(context, opened, effective);
  }
  if (context.options.json) context.out(JSON.stringify({ id, limits: effective }));
  return EXIT.completed;
}

/** Notes what a run that waited for a higher limit does now. `effective`: the limits in force. */
async function noteWaiting(
  context: CliContext,
  { client, run }: OpenedRun,
  effective: EffectiveLimits | null,
): Promise<void> {
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
    `It still waits at its limit: ${textNow(request, effective)}. Set a higher one, or decide with the commands shown by: ${see}`,
  );
}

/** Returns the text of a limit as it is now; the request keeps that at which the run has stopped. */
function textNow({ shown, limit: asked }: Request, effective: EffectiveLimits | null): string {
  if (asked === undefined || effective === null) return shown;
  const { turn, run } = effective;
  const { name, scope } = asked;
  const limit = (scope === 'run' ? null : turn[name]) ?? run[name] ?? null;
  return limitText({ ...asked, limit });
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
      limitAmount(name, turn[name]),
      limitAmount(name, run[name]),
    ]),
  ]);
}

/**
 * Raises limits by amounts. For the limit at which the run waits, this is a decision about its
 * request, which workers with `mayDecide` check; any other limit is set to the sum.
 */
async function addToLimits(
  context: CliContext,
  { id: named, add = {}, digest, by }: LimitsOptions,
): Promise<ExitCode> {
  assertAmounts(add);
  const opened = await requireOpenRun(context, named);
  const { id } = opened.run;
  const request = viewedRequests(opened.run.view, id).find(({ kind }) => kind === 'limit');
  const { run, ...turn } = add;
  const { limit } = request ?? {};
  const amount = limit && amountFor(limit, add);
  if (request !== undefined && limit !== undefined && amount !== undefined) {
    if (Object.keys(turn).length + Object.keys(run ?? {}).length > 1) {
      throw new UsageError(
        `--add: expected only ${limitWords(limit)}, at which the run waits, got more; add the others afterwards`,
      );
    }
    const what = {
      as: 'raise',
      command: 'limits',
      arguments: { [limit.name]: amount },
    } as const;
    return await submitDecision(context, { id, request: request.id, digest, by, ...what });
  }
  // With a digest, it is a decision, which would raise the limit again if it was made before.
  if (digest !== undefined) throw await noLimitRequest(context, opened.run, request);
  const before = opened.run.view.state?.config.limits;
  if (before === undefined) {
    throw new UsageError(
      `--add: run ${visible(id)} has not loaded its agent yet, so its limits are unknown; use --limit`,
    );
  }
  const sum: Limits = {
    ...sumOf(turn, before.turn),
    ...(run && { run: sumOf(run, before.run, 'run.') }),
  };
  return await showOrSetLimits(context, { id, limit: sum, ...(by !== undefined && { by }) });
}

/**
 * Returns by how much to raise the limit at which a run waits; undefined if other limits are meant. At a
 * limit of the whole run, its name without `run.` means it, too.
 */
function amountFor({ name, scope }: LimitReached, add: Limits): number | undefined {
  return add[name] ?? (scope === 'run' ? add.run?.[name] : undefined) ?? undefined;
}

/** Returns the error for a digest while no request is about the limits that are to be raised. `open`: one about another. */
async function noLimitRequest(
  context: CliContext,
  run: RunReading,
  open: Request | undefined,
): Promise<CommandError> {
  if (open?.limit !== undefined) {
    return new CommandError(
      'no_request',
      `--digest: request ${visible(open.id)} is about ${limitWords(open.limit)}; give --add ${limitWords(open.limit)}=N, or omit --digest to raise another limit`,
    );
  }
  const status = toRunStatus(run, Date.now());
  const last = status.decisions?.findLast(({ as }) => as === 'raise' || as === 'stop');
  const decided = decidedText(status, last?.request ?? '', formatDateTime)?.replace(
    /^request: /,
    'request ',
  );
  const what = decided ?? `run ${visible(run.id)} does not wait at one of these limits`;
  const see = await nextCommandFor(context, run, ['status', run.id]);
  return new CommandError(
    'no_request',
    `--digest: ${what}; omit --digest to raise the limits nevertheless. See: ${see}`,
  );
}

function assertAmounts({ run = {}, ...turn }: Limits): void {
  if (Object.values({ ...turn, ...run }).every((value) => value !== null)) return;
  throw new UsageError('--add: expected amounts, got none; set no limit with --limit NAME=none');
}

/** Returns limits raised by amounts. Throws a `UsageError` for a limit that is not set. */
export function sumOf(added: LimitSet, before: LimitSet, scope = ''): LimitSet {
  const sums = LIMIT_NAMES.flatMap((name) => {
    const by = added[name] ?? null;
    if (by === null) return [];
    const limit = before[name] ?? null;
    if (limit !== null) return [[name, roundedAmount(name, limit + by)] as const];
    const word = `${scope}${limitWord(name)}`;
    throw new UsageError(
      `--add: expected a limit that is set, got ${word}, which is none; use --limit ${word}=N`,
    );
  });
  return Object.fromEntries(sums);
}

interface ResolveCommandOptions {
  readonly id: string;
  /** The request, or the call that it is about. */
  readonly call: string;
  readonly as: DecisionKind;
  /** Parsed JSON. */
  readonly result?: Json;
  /** With `some`: the ids of the actions of a plan. */
  readonly actions?: string;
  /** The hash of the changed tool that is accepted. */
  readonly definition?: string;
  readonly digest?: string;
  readonly note?: string;
  readonly by?: string;
}

/**
 * `resolve ID CALL`: records a person's decision about a call or a request. The first decision
 * wins.
 */
export const resolve: Command<ResolveCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<id>', 'the run')
        .argument('<call>', 'the call or the request, as status shows it'),
      'as',
      'result',
      'actions',
      'definition',
      'digest',
      'note',
      'by',
    ),
  async run(context, { call, result, definition, note, actions, ...target }) {
    const { as } = target;
    if (result !== undefined && DECISION_FIELDS[as] !== 'result') {
      throw new UsageError(
        `--result: expected --as answer or happened, got --as ${as}; omit --result`,
      );
    }
    if (actions !== undefined && DECISION_FIELDS[as] !== 'actions') {
      throw new UsageError(`--actions: expected --as some, got --as ${as}; omit --actions`);
    }
    checkAcceptance(as, definition, target.digest);
    return await submitDecision(context, {
      ...target,
      request: call,
      command: 'resolve',
      given: resolveWords(as, { note, actions }),
      ...(result !== undefined && { result }),
      ...noteOf(note),
      ...(actions !== undefined && chosenActions(actions)),
      check: ({ request }) => checkDefinition(request, definition),
    });
  },
};

/** Returns the options of a `resolve` that needs a digest, as words. */
function resolveWords(
  as: DecisionKind,
  { note, actions }: { readonly note: string | undefined; readonly actions: string | undefined },
): readonly string[] {
  const optional = [
    ...(actions === undefined ? [] : ['--actions', actions]),
    ...(note === undefined ? [] : ['--note', note]),
  ];
  return ['--as', as, ...optional];
}

/**
 * Throws a `UsageError` unless the person accepts exactly the form of the tool that they have seen.
 */
function checkAcceptance(as: string, definition: string | undefined, digest: string | undefined) {
  if (as === 'accept' && definition === undefined && digest === undefined) {
    throw new UsageError(
      '--definition: expected the hash that status shows, or --digest, got none; --as accept needs it',
    );
  }
  if (as !== 'accept' && definition !== undefined) {
    throw new UsageError(`--definition: expected --as accept, got --as ${as}; omit --definition`);
  }
}

function checkDefinition(request: Request, definition: string | undefined): void {
  if (definition === undefined || definition === request.definition) return;
  throw new CommandError(
    'changed',
    `--definition: expected ${request.definition ?? 'none, since no tool has changed'}, got ${visible(definition)}; ` +
      'the tool may have changed again, so review it before you accept it',
  );
}
