import {
  type EraseOptions,
  type Erasure,
  assertOptions,
  eraseFrom,
} from '../../client/erasure/erase-runs.js';
import type { LeftOver } from '../../client/erasure/perform-erasure.js';
import { storedIds } from '../../client/run-ids.js';
import { InputError } from '../../core/errors.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import type { ErasureCounts } from '../../storage/erasure-log.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { formatCount } from '../format/format.js';
import { noteServer } from '../hosting/server-notes.js';
import { type Confirmation, confirm, requireConfirmable } from '../input/confirm.js';
import { deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';

interface EraseCommandOptions {
  readonly ids: readonly string[];
  readonly tag?: readonly string[];
  readonly agent?: string;
  readonly before?: string;
  readonly orphans?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly by?: string;
  /** In milliseconds. */
  readonly grace?: number;
  readonly storeNamespace?: readonly string[];
}

const ABOUT =
  '\nRuns that have ended are removed with those of the agents that they have called: their histories on the server, their part\n' +
  'of the archive, and the texts, attachments, and artifacts to which nothing else refers. Then it looks again. If it is\n' +
  'interrupted, the next call continues. An erasure log beside the archive has who erased what and when; export what you need\n' +
  'of the audit log before, since it is derived from the histories. Backups, and versions that a bucket keeps, stay.';

/** The runs that are named before the rest is only counted. */
const SHOWN = 20;

const WAITING =
  'Erasing. The server removes histories in the background; of a run that has just ended, after half a minute.';

/** `erase ID...`: removes runs that have ended, with everything that is stored of them. */
export const erase: Command<EraseCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('[ids...]', 'runs that have ended'),
      'tag',
      'agent',
      'before',
      'orphans',
      'dryRun',
      'yes',
      'by',
      'grace',
      'storeNamespace',
    ).addHelpText('after', ABOUT),
  async run(context, { dryRun = false, yes = false, ...given }) {
    const wanted = optionsOf(given);
    check(wanted);
    requireConfirmable(context, { yes, dryRun });
    noteServer(context, await context.server());
    const { archive, blobs } = await context.stores();
    const sources = { client: await context.client(), archive, blobs };
    const attempt = async (options: EraseOptions): Promise<Erasure> =>
      await eraseFrom(sources, options).catch(rethrowInFlags);
    const named = wanted.runs && (await storedIds(sources.client, wanted.runs, archive));
    const stored = { ...wanted, ...(named && { runs: named }) };
    const plan = await attempt({ ...stored, dryRun: true });
    const isOnlyShown = dryRun || isEmpty(plan);
    const answer = isOnlyShown || yes ? 'yes' : await confirmed(context, plan);
    if (isOnlyShown || answer !== 'yes') {
      report(context, plan, dryRun);
      if (answer === 'interrupted') return EXIT.interrupted;
      return dryRun ? codeOf({ ...plan, left: [], continued: [] }) : codeOf(plan);
    }
    // Only what was shown.
    const { tag: _tag, agent: _agent, before: _before, ...rest } = stored;
    const runs = plan.runs.map(({ id }) => id);
    if (runs.length > 0 || plan.continued.length > 0) context.note(WAITING);
    const done = await attempt(runs.length === 0 ? stored : { ...rest, runs });
    const refused = [...plan.refused, ...done.refused].filter(
      ({ id }, index, all) => all.findIndex((one) => one.id === id) === index,
    );
    const result = { ...done, refused };
    report(context, result, true);
    return codeOf(result);
  },
};

function optionsOf({
  ids,
  tag,
  agent,
  before,
  orphans,
  by,
  grace,
  storeNamespace,
}: Omit<EraseCommandOptions, 'dryRun' | 'yes'>): EraseOptions {
  return {
    by: deciderName(by),
    ...(ids.length > 0 && { runs: ids }),
    ...(tag && { tag }),
    ...(agent !== undefined && { agent }),
    ...(before !== undefined && { before }),
    ...(orphans && { orphans }),
    ...(grace !== undefined && { grace }),
    ...(storeNamespace && { namespaces: storeNamespace }),
  };
}

/** Throws a `UsageError` for invalid options before anything is opened. */
function check(options: EraseOptions): void {
  try {
    assertOptions(options);
  } catch (error) {
    rethrowInFlags(error);
  }
}

/** Throws a `UsageError` that names flags instead of fields for invalid options. */
function rethrowInFlags(error: unknown): never {
  if (!InputError.isInstance(error)) throw error;
  const text = error.message
    .replace(/^eraseRuns: /, '')
    .replaceAll(/^(- )?(tag|agent|before|grace)(?=: )/gm, '$1--$2')
    .replace(/^runs: /, 'ids: ');
  throw new UsageError(text, { cause: error });
}

function isEmpty({ runs, removed, continued }: Erasure): boolean {
  return runs.length === 0 && removed.blobs === 0 && continued.length === 0;
}

function codeOf({ refused, left, continued }: Erasure): ExitCode {
  const isLeft = left.some(({ why }) => why !== 'used');
  const isOpen = continued.some(({ endedAt }) => endedAt === null);
  return refused.length > 0 || isLeft || isOpen ? EXIT.failed : EXIT.completed;
}

/** Shows what would be removed, and asks a person at the terminal. */
async function confirmed(context: CliContext, plan: Erasure): Promise<Confirmation> {
  for (const line of linesOf(plan)) context.note(line);
  const what = plan.runs.length > 0 ? formatCount(plan.runs.length, 'run') : 'this';
  return await confirm(`erase ${what}? It cannot be undone.`);
}

/** `isFinal`: false if a person has refused, or there is nothing to remove. */
function report(context: CliContext, erasure: Erasure, isFinal: boolean): void {
  if (context.options.json) return context.out(JSON.stringify(erasure));
  const lines = isFinal || isEmpty(erasure) ? linesOf(erasure) : [];
  for (const line of lines) context.out(line);
  if (isEmpty(erasure)) context.note('There is nothing to erase.');
  else if (!isFinal) context.note('Nothing was erased.');
}

function linesOf(erasure: Erasure): readonly string[] {
  const { dryRun, runs, refused, removed, left, unreadable, continued } = erasure;
  const shown = runs.slice(0, SHOWN).map(({ id, segments }) => {
    const parts = segments.length > 1 ? ` (${segments.length} segments)` : '';
    return `${dryRun ? 'would erase' : 'erased'} ${visible(id)}${parts}`;
  });
  const more = runs.length - shown.length;
  const some = removed.histories + removed.archived + removed.blobs > 0;
  return [
    ...continued.map(({ erasure: name, by, startedAt, endedAt }) => {
      const how = dryRun
        ? 'would continue'
        : endedAt === null
          ? 'continued, not complete'
          : 'completed';
      return `${how}: the erasure ${visible(name)} that ${visible(by)} began at ${startedAt}`;
    }),
    ...shown,
    ...(more > 0 ? [`and ${formatCount(more, 'more run')}`] : []),
    ...refused.map(({ id, why }) => `not erased: ${visible(id)}: ${visible(why)}`),
    ...(some ? [`${dryRun ? 'would remove' : 'removed'} ${countsText(removed)}`] : []),
    ...leftLines(left),
    ...unreadable.map((why) => `unreadable: ${visible(why)}`),
  ];
}

function countsText({ histories, archived, blobs }: ErasureCounts): string {
  return [
    formatCount(histories, 'history', 'histories'),
    `${formatCount(archived, 'history', 'histories')} of the archive`,
    formatCount(blobs, 'text'),
  ].join(', ');
}

const WHY: Readonly<Record<LeftOver['why'], string>> = {
  grace:
    'stored within the grace period, so a run may be about to refer to it; a later erasure removes it',
  used: 'something else refers to it',
  unknown_use: 'not everything that may refer to it could be read; see below',
  unsupported: 'it cannot be removed from here',
  failed: 'it could not be removed; the next erasure tries again',
};

/** Returns a line for each reason, and one for each thing that has a message. */
function leftLines(left: readonly LeftOver[]): readonly string[] {
  const counts = new Map<string, LeftOver[]>();
  const lines: string[] = [];
  for (const one of left) {
    const { what, name, why, message } = one;
    if (message !== undefined)
      lines.push(`stays: ${WORDS[what][0]} ${visible(name)}: ${visibleMessage(message)}`);
    else counts.set(`${what} ${why}`, [...(counts.get(`${what} ${why}`) ?? []), one]);
  }
  const counted = [...counts.values()].flatMap((all) => {
    const [first] = all;
    if (first === undefined) return [];
    return [`stays: ${formatCount(all.length, ...WORDS[first.what])}: ${WHY[first.why]}`];
  });
  return [...counted, ...lines];
}

const WORDS: Readonly<Record<LeftOver['what'], readonly [string, string]>> = {
  history: ['history', 'histories'],
  archived: ['history of the archive', 'histories of the archive'],
  blob: ['text', 'texts'],
  record: ['entry of the erasure log', 'entries of the erasure log'],
};
