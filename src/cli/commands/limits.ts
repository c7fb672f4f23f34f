import { LIMIT_NAMES, type LimitName, type Limits } from '../../core/definition/definition.js';
import { limitFlag, limitWord } from '../../core/requests/commands.js';
import type { EffectiveLimits } from '../../core/state/state.js';
import { visible } from '../../core/state/summaries.js';
import type { Json } from '../../core/text/json.js';
import type { Request } from '../../core/transcript/request.js';
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
import { columns, formatDuration } from '../format/format.js';
import { withWorker } from '../hosting/with-worker.js';
import { deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import { type OpenedRun, requireOpenRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { submitDecision } from '../requests/decide.js';
import { chosenActions } from '../requests/prompt.js';
import { viewedRequests } from '../requests/show-request.js';
import { noteOf } from './approve.js';

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

/** By how much to raise each limit; `wall` is in ms. */
type Added = Readonly<Partial<Record<Exclude<LimitName, 'wallMs'> | 'wall', number>>>;

export interface RaiseOptions extends Added {
  readonly id: string;
  readonly request: string;
  readonly digest?: string;
  readonly by?: string;
}

/** `raise ID REQUEST`: raises the limit that a run has reached by the given amount. */
export const raise: Command<RaiseOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<request>', 'the request, as inbox shows it'),
      'digest',
      'steps',
      'toolCalls',
      'tokens',
      'costUsd',
      'wall',
      'depth',
      'by',
    ),
  async run(context, { id, request, digest, by, ...given }) {
    const added = addedBy(given);
    const [name] = Object.keys(added);
    const what = { as: 'raise', command: 'raise', arguments: added } as const;
    return await submitDecision(context, {
      id,
      request,
      digest,
      by,
      ...what,
      check: ({ request: found }) => checkLimit(found, name ?? ''),
    });
  },
};

/**
 * Returns the limit to raise and the amount. Throws a `UsageError` unless the options set exactly
 * one limit.
 */
export function addedBy({ wall, ...rest }: Added): Readonly<Record<string, number>> {
  const given: Readonly<Partial<Record<LimitName, number>>> = {
    ...rest,
    ...(wall !== undefined && { wallMs: wall }),
  };
  const named = LIMIT_NAMES.flatMap((name) => {
    const value = given[name];
    return value === undefined ? [] : [{ name, value }];
  });
  const [first] = named;
  if (first === undefined || named.length > 1) {
    const got =
      named.length === 0 ? 'none' : named.map(({ name }) => limitFlag(name)).join(' and ');
    throw new UsageError(`raise: expected one limit, got ${got}; give for example --steps 10`);
  }
  const { name, value } = first;
  if (value > 0 && (name === 'costUsd' || Number.isInteger(value))) return { [name]: value };
  const kind = name === 'costUsd' ? 'number' : 'whole number';
  throw new UsageError(`${limitFlag(name)}: expected a positive ${kind}, got ${value}`);
}

/** Throws a `UsageError` if the request is about another limit, or not about a limit. */
function checkLimit({ id, limit }: Request, name: string): void {
  if (limit === undefined) {
    throw new UsageError(
      `raise: expected a request about a limit, got ${visible(id)}; see what it asks for with inbox`,
    );
  }
  if (limit.name === name) return;
  throw new UsageError(
    `raise: expected ${limitFlag(limit.name)}, the limit that the run has reached; got another one`,
  );
}

/** The decisions that need no further arguments than these options. */
const WORDS = [
  'happened',
  'retry',
  'abandon',
  'accept',
  'approve',
  'some',
  'deny',
  'answer',
  'stop',
] as const;
const WITH_RESULT: readonly string[] = ['happened', 'answer'];

export interface ResolveCommandOptions {
  readonly id: string;
  /** The request, or the call that it is about. */
  readonly call: string;
  readonly as: (typeof WORDS)[number];
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
  async run(context, { call, result, definition, note, actions, ...given }) {
    const { as } = given;
    if (result !== undefined && !WITH_RESULT.includes(as)) {
      throw new UsageError(`--result: expected --as happened, got --as ${as}; omit --result`);
    }
    if (actions !== undefined && as !== 'some') {
      throw new UsageError(`--actions: expected --as some, got --as ${as}; omit --actions`);
    }
    checkAcceptance(as, definition, given.digest);
    return await submitDecision(context, {
      ...given,
      request: call,
      command: 'resolve',
      ...(result !== undefined && { result }),
      ...noteOf(note),
      ...(actions !== undefined && chosenActions(actions)),
      check: ({ request }) => checkDefinition(request, definition),
    });
  },
};

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
