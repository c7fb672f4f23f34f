import { rm } from 'node:fs/promises';
import { extname } from 'node:path';
import { readStatus } from '../../client/below.js';
import { RunTokenError } from '../../core/errors.js';
import { keyringFrom } from '../../encryption/keyring.js';
import { hashedWith } from '../../temporal/stored-ids.js';
import { visible } from '../../core/state/summaries.js';
import { escapeJson } from '../../core/text/text.js';
import { decodeEvents } from '../../history/decode-event.js';
import { type History, historyToJson } from '../../history/history-event.js';
import { previousRunId, readSegment } from '../../history/segments.js';
import { runToken } from '../../live/live-options.js';
import type { Archive } from '../../storage/blob-store.js';
import { pinnedBuild } from '../../temporal/pollers.js';
import {
  type CliContext,
  type Command,
  CommandError,
  EXIT,
  type ExitCode,
  UsageError,
} from '../context.js';
import { dataPalette, formatCount } from '../format/format.js';
import {
  needsWorker,
  noteMissingWorker,
  readWorkerPresence,
  withDiskCheck,
} from '../hosting/server-notes.js';
import { osUser } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import { assertNewFile, renameOutput, writeOutput } from '../input/output-file.js';
import {
  type OpenedRun,
  agentLack,
  noteClear,
  openRun,
  undoingTools,
  workerHint,
} from '../open-run.js';
import { nextSteps, runnableStatus, runnableText } from '../reports/next-command.js';
import { uiLink } from '../reports/run-pages.js';
import { limitLine } from '../reports/stopped-run.js';
import { belowLines } from '../requests/below.js';
import { columnsOf, shownRequest } from '../requests/show-request.js';
import { statusLines } from '../run-view/status-lines.js';

/** `status ID`: shows the status of a run as the server has recorded it. Needs no worker. */
export const status: Command<{ readonly id: string }> = {
  declare: (entry) => entry.argument('<id>', 'the run'),
  run: async (context, { id }) => await withDiskCheck(context, () => showStatus(context, id)),
};

async function showStatus(context: CliContext, id: string): Promise<ExitCode> {
  const { client, run } = await openRun(context, id, { archive: true });
  const now = Date.now();
  const found = runnableStatus(context, await readStatus(client, run, now, osUser()));
  const { archived } = found;
  const pinnedTo = pinnedBuild(run.description?.searchAttributes ?? {});
  const worker = await readWorkerPresence(client, run.taskQueue, pinnedTo);
  const lack = await agentLack(context, run);
  if (!archived && needsWorker(found)) {
    noteMissingWorker(context, worker, await workerHint(context, run));
  }
  if (context.options.json) {
    context.out(JSON.stringify(found));
    return EXIT.completed;
  }
  const next = await nextSteps(
    context,
    {
      run,
      status: found,
      hasWorker: worker.isUp,
      canHost: lack === null,
      undoes: await undoingTools(context, run),
    },
    now,
  );
  const link = archived ? null : uiLink(await context.server(), run.id);
  const limit = found.outcome === null ? null : limitLine(context, run, found.outcome);
  const workers = runnableText(context, worker.text);
  const view = {
    run,
    status: found,
    worker: workers,
    link,
    limit,
    next,
    now,
    width: columnsOf('stdout'),
  };
  for (const line of statusLines(view, dataPalette(context))) context.out(line);
  for (const request of found.pending) {
    context.out('');
    const { lines } = await shownRequest(context, { run, request }, { to: 'stdout' });
    for (const line of lines) context.out(line);
  }
  const { below: requests = [], blockedBelow: blocked = [] } = found;
  const lines = belowLines(context, { requests, blocked }, 'stdout');
  if (lines.length > 0) context.out('');
  for (const line of lines) context.out(line);
  return EXIT.completed;
}

interface LiveTokenOptions {
  readonly id: string;
  /** How long the token is valid, in ms; default one hour. */
  readonly expiresIn?: number;
}

/**
 * `live-token ID`: creates a token that can read the live stream of one run. Contacts no server.
 */
export const liveToken: Command<LiveTokenOptions> = {
  declare: (entry) => withOptions(entry.argument('<id>', 'the run'), 'expiresIn'),
  async run(context, { id: named, expiresIn }) {
    const id = await liveId(context, named);
    const secret = context.env['PERDURE_LIVE_TOKEN'] ?? '';
    const token = createToken({
      run: id,
      token: secret,
      ...(expiresIn !== undefined && { expiresIn }),
    });
    const [, , expires = ''] = token.split('.');
    const expiresAt = new Date(Number(expires) * 1_000).toISOString();
    context.out(context.options.json ? JSON.stringify({ id, token, expiresAt }) : token);
    context.note(`The token reads this run until ${expiresAt}: Authorization: Bearer …`);
    return EXIT.completed;
  },
};

/** Returns the id of a run as workers know it. Without a server, none that is older than the hashing of ids. */
async function liveId(context: CliContext, id: string): Promise<string> {
  const keyring = keyringFrom((await context.config()).encryption, context.env);
  return hashedWith(keyring?.ids ?? null, 'run', id);
}

/** Throws a `UsageError` that names the flags instead of the fields. */
function createToken(options: Parameters<typeof runToken>[0]): string {
  try {
    return runToken(options);
  } catch (error) {
    if (!RunTokenError.isInstance(error)) throw error;
    const message = error.message
      .replace(/^expiresIn: .*$/s, '--expires-in: expected 1s to 7d')
      .replace(/^run:/, 'id:')
      .replace(/^token: expected the workers' token/, 'PERDURE_LIVE_TOKEN: expected a secret');
    throw new UsageError(message, { cause: error });
  }
}

interface ExportOptions {
  readonly id: string;
  /** Path of a file; absent: stdout. */
  readonly out?: string;
  /** Counted from 1; absent: the newest segment. */
  readonly segment?: number;
  readonly allSegments?: boolean;
  /** Overwrite a file that exists. */
  readonly force?: boolean;
}

/**
 * `export ID`: writes the history in the JSON format of Temporal's own tools, which `replay` reads.
 */
export const exportRun: Command<ExportOptions> = {
  declare: (entry) =>
    withOptions(entry.argument('<id>', 'the run'), 'out', 'segment', 'allSegments', 'force'),
  run: exportHistory,
};

interface Opened extends OpenedRun {
  readonly archive: Archive;
}

async function exportHistory(context: CliContext, options: ExportOptions): Promise<ExitCode> {
  const { out, segment, allSegments: all = false, force } = options;
  checkOptions(options);
  if (out !== undefined && !all) await assertNewFile({ option: '--out', file: out }, force);
  const { archive } = await context.stores();
  const opened = { ...(await openRun(context, options.id, { archive: true })), archive };
  const { id } = opened.run;
  if (all) return await exportAll(context, opened, { out: out ?? '', force });
  const found =
    segment === undefined ? newestSegment(opened) : await segmentNumbered(opened, segment);
  const { runId, history } = found;
  const json = escapeJson(historyToJson(history));
  if (out === undefined) {
    context.out(json);
  } else {
    await writeOutput({ option: '--out', file: out }, `${json}\n`);
    const events = eventCount(history);
    context.note(
      `${formatCount(events, 'event')} of run ${visible(id)} written to ${visible(out)}`,
    );
    if (context.options.json) context.out(JSON.stringify({ id, runId, events, file: out }));
  }
  noteClear(context, opened.client);
  const { number } = newestSegment(opened);
  if (segment === undefined && number > 1) {
    context.note(
      `This is the newest of ${formatCount(number, 'segment')}; export others with --segment N or --all-segments`,
    );
  }
  return EXIT.completed;
}

function checkOptions({ segment, allSegments: all, out }: ExportOptions): void {
  if (all && segment !== undefined) {
    throw new UsageError(`--segment: expected no --all-segments, got both; omit one of the two`);
  }
  if (all && out === undefined) {
    throw new UsageError(
      '--all-segments: expected --out FILE, got none; each segment is written to its own file',
    );
  }
  if (segment === undefined || (Number.isInteger(segment) && segment >= 1)) return;
  throw new UsageError(`--segment: expected a whole number from 1, got ${segment}`);
}

function newestSegment({ run }: Pick<OpenedRun, 'run'>): SegmentHistory {
  const number = run.view.state?.segments ?? 1;
  return { number, runId: run.runId, history: run.history };
}

async function segmentNumbered(opened: Opened, requested: number): Promise<SegmentHistory> {
  const last = newestSegment(opened);
  if (requested > last.number) {
    throw new UsageError(
      `--segment: expected 1 to ${last.number}, got ${requested}; the run has ${formatCount(last.number, 'segment')}`,
    );
  }
  for await (const segment of segmentsBack(opened, last)) {
    if (segment.number === requested) return segment;
  }
  throw new CommandError(
    'unavailable',
    `--segment: the server has deleted segment ${requested}, and the archive does not have it; the newest is ${last.number}`,
  );
}

async function exportAll(
  context: CliContext,
  opened: Opened,
  { out, force }: { readonly out: string; readonly force: boolean | undefined },
): Promise<ExitCode> {
  const { id } = opened.run;
  const files: { segment: number; runId: string; events: number; file: string }[] = [];
  try {
    for await (const { number, runId, history } of segmentsBack(opened, newestSegment(opened))) {
      const file = numberedFile(out, number);
      await assertNewFile({ option: '--out', file }, force);
      const events = eventCount(history);
      files.unshift({ segment: number, runId, events, file });
      const text = `${escapeJson(historyToJson(history))}\n`;
      await writeOutput({ option: '--out', file: partOf(file) }, text);
    }
    await nameAll(context, files);
  } finally {
    // After an error, no segment has a file, or each whose file is there is whole.
    await Promise.all(files.map(({ file }) => rm(partOf(file), { force: true })));
  }
  for (const { segment, events, file } of files.toReversed()) {
    context.note(
      `${formatCount(events, 'event')} of segment ${segment} of run ${visible(id)} written to ${visible(file)}`,
    );
  }
  noteClear(context, opened.client);
  const oldest = files[0]?.segment ?? 1;
  if (oldest > 1)
    context.note(
      `The server has deleted the segments before ${oldest}, and the archive does not have them.`,
    );
  if (context.options.json) context.out(JSON.stringify({ id, files }));
  return EXIT.completed;
}

/** Gives the files of segments that were written their names; says which have one if that fails halfway. */
async function nameAll(context: CliContext, files: readonly { file: string }[]): Promise<void> {
  for (const [at, { file }] of files.entries()) {
    await renameOutput({ option: '--out', file }, partOf(file)).catch((error: unknown) => {
      const named = files.slice(0, at).map((one) => visible(one.file));
      if (named.length > 0) {
        context.note(
          `Written: ${named.join(', ')}, and no other segment. Once all files can be written, the same command with --force writes them.`,
        );
      }
      throw error;
    });
  }
}

/** The name under which a file is written until all are. */
function partOf(file: string): string {
  return `${file}.part`;
}

/** Turns `run.json` into `run-3.json`. */
function numberedFile(file: string, number: number): string {
  const extension = extname(file);
  return `${file.slice(0, file.length - extension.length)}-${number}${extension}`;
}

function eventCount({ events }: History): number {
  return events?.length ?? 0;
}

/** The history of one segment. */
interface SegmentHistory {
  /** Counted from 1. */
  readonly number: number;
  readonly runId: string;
  readonly history: History;
}

/** Yields the segments of a run that the server or the archive has, from `last` backward. */
async function* segmentsBack(
  { client, run, archive }: Opened,
  last: SegmentHistory,
): AsyncGenerator<SegmentHistory, void, undefined> {
  for (let segment = last; ;) {
    yield segment;
    const runId = previousRunId(decodeEvents(run.id, segment.history.events?.slice(0, 1)));
    if (runId === '') return;
    const found = await readSegment(client, { id: run.id, runId, archive });
    if (found === null) return;
    segment = { number: segment.number - 1, runId, history: found.history };
  }
}
