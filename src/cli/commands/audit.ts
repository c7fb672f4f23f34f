import { readFile } from 'node:fs/promises';
import { type ListFilter, startRange } from '../../client/list-filter.js';
import { listRuns } from '../../client/list.js';
import { visible } from '../../core/state/summaries.js';
import { escapeJson, show } from '../../core/text/text.js';
import { type AuditEntry, readAudit, verifyAudit } from '../../history/audit.js';
import { type ErasureRecord, readRecords } from '../../storage/erasure-log.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { formatCount } from '../format/format.js';
import { noteServer } from '../hosting/server-notes.js';
import { withOptions } from '../input/options.js';
import { assertNewFile, writeOutput } from '../input/output-file.js';
import { storedId } from '../../client/run-ids.js';
import { openRun } from '../open-run.js';

interface AuditCommandOptions {
  readonly ids: readonly string[];
  readonly tag?: readonly string[];
  readonly since?: string;
  readonly before?: string;
  readonly out?: string;
  /** Overwrite a file that exists. */
  readonly force?: boolean;
  readonly verify?: string;
  readonly head?: string;
}

const ABOUT =
  '\nThe log says who started a run, sent a message, decided, paused, changed limits, or erased the run, and which tools with\n' +
  'a side effect were executed. It holds digests in place of texts and arguments. Each line has the hash of the one before,\n' +
  'so a changed, removed, or added line is found by --verify. Keep the hash of the last line elsewhere, and give it with\n' +
  '--head: without it, lines that are missing at the end are not found.';

/**
 * `audit ID...`: writes what people and tools have done in runs as JSON lines that are chained by hash.
 * `audit --verify FILE` checks such a log offline.
 */
export const audit: Command<AuditCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('[ids...]', 'runs; the agents that they have called are part of the log'),
      'tag',
      'since',
      'before',
      'out',
      'force',
      'verify',
      'head',
    ).addHelpText('after', ABOUT),
  async run(context, options) {
    return options.verify === undefined
      ? await writeLog(context, options)
      : await checkLog(context, { ...options, verify: options.verify });
  },
};

async function writeLog(
  context: CliContext,
  { ids, tag, since, before, out, head, force }: AuditCommandOptions,
): Promise<ExitCode> {
  if (head !== undefined) throw new UsageError('--head: expected only with --verify; remove it');
  const isFiltered = tag !== undefined || since !== undefined || before !== undefined;
  if (ids.length > 0 === isFiltered) {
    throw new UsageError(
      'ids: expected ids of runs, or --tag, --since, or --before instead of ids',
    );
  }
  const file = out === undefined ? null : { option: '--out', file: out };
  if (file !== null) await assertNewFile(file, force);
  const { archive } = await context.stores();
  const records = await erasures(context);
  const erased = new Set(records.flatMap((one) => one.runs.map(({ id }) => id)));
  const client = await context.client();
  const named: string[] = [];
  for (const id of ids) {
    const stored = await storedId(client, id, archive);
    named.push(stored);
    // The note or the error names the id as it was given.
    if (!erased.has(stored)) await openRun(context, id, { archive: true });
  }
  const runs = isFiltered
    ? await idsOf(context, records, {
        ...(tag && { tag }),
        ...(since !== undefined && { since }),
        ...(before !== undefined && { before }),
      })
    : named;
  const entries = await readAudit({ client, archive }, runs);
  const lines = entries.map((entry) => JSON.stringify(entry));
  if (file === null) for (const line of lines) context.out(escapeJson(line));
  else await writeOutput(file, lines.map((line) => `${line}\n`).join(''));
  noteHead(context, entries, out);
  if (out !== undefined && context.options.json) {
    const last = entries.at(-1)?.hash ?? null;
    context.out(JSON.stringify({ file: out, entries: entries.length, head: last }));
  }
  return EXIT.completed;
}

/** Returns the entries of the erasure log; notes those that cannot be read. */
async function erasures(context: CliContext): Promise<readonly ErasureRecord[]> {
  const { erasure } = (await context.stores()).archive;
  if (erasure === undefined) return [];
  const { namespace } = (await context.client()).options;
  const { records, damaged } = await readRecords(erasure, namespace);
  for (const name of damaged) {
    context.note(
      `The entry ${visible(name)} of the erasure log is damaged, so the log may lack an erasure; restore it from a backup.`,
    );
  }
  return records;
}

/**
 * Returns the ids of all runs that the filter matches, oldest first. Without a tag, runs that were
 * erased in this time come first: nothing else is known of them.
 */
async function idsOf(
  context: CliContext,
  records: readonly ErasureRecord[],
  filter: ListFilter,
): Promise<readonly string[]> {
  noteServer(context, await context.server());
  const client = await context.client();
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof listRuns>> = await listRuns(client, {
      ...filter,
      ...(cursor !== null && { cursor }),
    });
    ids.push(...page.rows.map(({ id }) => id));
    ({ cursor } = page);
  } while (cursor !== null);
  const { since, before } = startRange(filter, Date.now());
  const erased =
    filter.tag !== undefined
      ? []
      : records.flatMap((one) => {
          const at = Date.parse(one.startedAt);
          const isMatch = at >= (since ?? 0) && at < (before ?? Number.POSITIVE_INFINITY);
          return isMatch ? one.runs.map(({ id }) => id) : [];
        });
  return [...new Set([...erased, ...ids.toReversed()])];
}

function noteHead(context: CliContext, entries: readonly AuditEntry[], out?: string): void {
  const last = entries.at(-1);
  if (last === undefined) return context.note('No runs match, so the log is empty.');
  const runs = new Set(entries.flatMap(({ type, run }) => (type === 'damaged' ? [] : run))).size;
  const where = out === undefined ? '' : ` written to ${visible(out)}`;
  context.note(
    `${formatCount(entries.length, 'entry', 'entries')} of ${formatCount(runs, 'run')}${where}; keep the head elsewhere: ${last.hash}`,
  );
}

/** The hash of the last line of a log. */
const HEAD = /^[0-9a-f]{64}$/;

async function checkLog(
  context: CliContext,
  { ids, verify: file, head }: AuditCommandOptions & { readonly verify: string },
): Promise<ExitCode> {
  if (ids.length > 0) throw new UsageError('ids: expected none with --verify; remove them');
  if (head !== undefined && !HEAD.test(head)) {
    throw new UsageError(
      `--head: expected 64 hexadecimal digits, as the command prints the head of a log, got ${show(head)}`,
    );
  }
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`--verify: expected a readable file, got ${visible(file)} (${reason})`, {
      cause: error,
    });
  });
  const check = verifyAudit(text, head === undefined ? {} : { head });
  if (context.options.json) context.out(JSON.stringify(check));
  else if (check.ok) {
    context.out(`unchanged: ${formatCount(check.entries, 'entry', 'entries')}, head ${check.head}`);
    if (head === undefined)
      context.note('Compare the head with the one that you kept, or give it with --head.');
  } else context.out(`changed: line ${check.line}: ${visible(check.problem)}`);
  return check.ok ? EXIT.completed : EXIT.failed;
}
