import { toRunStatus } from '../../client/status.js';
import { visible } from '../../core/state/summaries.js';
import { actorOf } from '../../core/input/turn-context.js';
import { type Message, isSide } from '../../core/transcript/messages.js';
import { callPairs } from '../../core/transcript/transcript.js';
import type { RunReading } from '../../history/read-run.js';
import { type PlacedNodeStep, readNodeSteps } from '../../history/placed-node-steps.js';
import {
  type RunTranscript,
  readTranscript,
  readTurns,
  withFullText,
} from '../../history/run-transcript.js';
import type { Archive } from '../../storage/blob-store.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { dataPalette, formatCount } from '../format/format.js';
import { withOptions } from '../input/options.js';
import { type OpenedRun, openRun } from '../open-run.js';
import { nextCommandOf } from '../reports/next-command.js';
import {
  type EndedAction,
  type RequestedUndo,
  type SegmentMark,
  dialogue,
  endedActionLines,
  endedActions,
  pairLines,
  turnLines,
} from '../run-view/dialogue.js';

export interface TranscriptOptions {
  readonly id: string;
  /** Number of the first message, from 0. */
  readonly from?: number;
  /** Number of the message to stop before. */
  readonly until?: number;
  /** Truncate nothing, and fetch large texts from the blob store. */
  readonly full?: boolean;
  /** Include refused answers. */
  readonly side?: boolean;
  /** Print the calls with their results instead of the messages. */
  readonly calls?: boolean;
  /** Print the turns instead of the messages. */
  readonly turns?: boolean;
}

/**
 * `transcript ID`: prints the messages of a run from its histories and the archive. Needs no
 * worker.
 */
export const transcript: Command<TranscriptOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run'),
      'from',
      'until',
      'side',
      'full',
      'calls',
      'turns',
    ),
  run: printTranscript,
};

async function printTranscript(context: CliContext, options: TranscriptOptions): Promise<ExitCode> {
  const { id, from, until: to, turns = false } = options;
  checkRange({ '--from': from, '--until': to });
  checkView(options);
  const opened = await openRun(context, id, { archive: true });
  const { archive } = await context.stores();
  if (turns) return await printTurns(context, opened, archive);
  return await printMessages(context, { ...opened, archive }, options);
}

async function printTurns(
  context: CliContext,
  { client, run }: OpenedRun,
  archive: Archive,
): Promise<ExitCode> {
  const log = await readTurns(client, run, archive);
  if (context.options.json) context.out(JSON.stringify(log));
  else for (const line of turnLines(log.turns, dataPalette(context))) context.out(line);
  if (log.turns.length === 0) context.note('No turn of the run has ended.');
  if (log.incomplete) {
    context.note(
      `Some turns are missing: the server has deleted them, and the archive in ${context.home} does not have them.`,
    );
  }
  return EXIT.completed;
}

async function printMessages(
  context: CliContext,
  { client, run, archive }: OpenedRun & { readonly archive: Archive },
  options: TranscriptOptions,
): Promise<ExitCode> {
  const { from, until: to, full = false, side = false, calls = false } = options;
  // The result of a call may be outside the range.
  const end = calls ? undefined : to;
  const read = await readTranscript(client, run, { archive, from, to: end, side: true });
  const { total, decisions } = read;
  const undos = requestedUndos(run);
  const messages = side ? read.messages : read.messages.filter((message) => !isSide(message));
  const hidden = read.messages.length - messages.length;
  const nodes = await readNodeSteps(client, run, { archive, from, to });
  const { blobs } = await context.stores();
  const shown = full
    ? await withFullText(messages, blobs, (reason) => context.note(`shown in part: ${reason}`))
    : messages;
  if (total === 0 && nodes.length === 0) {
    const why = run.view.ended ? ': it never started' : ': it has not started';
    context.note(`The run has no messages${run.view.state === null ? why : ''}.`);
  }
  if (calls) {
    printCalls(context, shown, { to, full, decisions, undos, actions: endedActions(nodes) });
    noteNodeValues(context, run, nodes);
  } else if (context.options.json) {
    const isGraph = run.view.state?.graph !== undefined;
    context.out(
      JSON.stringify({
        messages: shown,
        total,
        ...(isGraph && { nodes }),
        ...(decisions && { decisions }),
        ...(undos.length > 0 && { undos }),
      }),
    );
  } else {
    const lines = {
      full,
      paint: dataPalette(context),
      segment: segmentMark(run),
      nodes,
      decisions,
      undos,
    };
    for (const line of dialogue(shown, lines)) context.out(line);
    if (read.messages.length < total) {
      context.note(`${shown.length} of the ${total} messages of run ${visible(run.id)}`);
    }
    const { forkedFrom } = run.view.state ?? {};
    if (forkedFrom !== undefined && (from ?? 0) < forkedFrom.at) {
      context.note(
        `The messages before #${forkedFrom.at} come from run ${visible(forkedFrom.run)}, from which this run was forked`,
      );
    }
    if (hidden > 0) {
      context.note(
        `${formatCount(hidden, 'message')} about refused answers not shown; show them with --side`,
      );
    }
  }
  if (read.completeFrom > (from ?? 0)) {
    context.note(
      `Some messages before #${read.completeFrom} are missing: the server has deleted them, and the archive in ${context.home} does not have them.`,
    );
  }
  return EXIT.completed;
}

function printCalls(
  context: CliContext,
  messages: readonly Message[],
  {
    to = Infinity,
    full,
    decisions,
    undos,
    actions,
  }: {
    readonly to: number | undefined;
    readonly full: boolean;
    readonly decisions: RunTranscript['decisions'] | undefined;
    readonly undos: readonly RequestedUndo[];
    readonly actions: readonly EndedAction[];
  },
): void {
  const calls = callPairs(messages).filter(({ n }) => n < to);
  if (context.options.json)
    return context.out(
      JSON.stringify({
        calls,
        ...(actions.length > 0 && { actions }),
        ...(decisions && { decisions }),
        ...(undos.length > 0 && { undos }),
      }),
    );
  if (calls.length === 0) context.note('No tool calls in these messages.');
  const paint = dataPalette(context);
  for (const line of pairLines(calls, { full, paint, decisions, undos })) context.out(line);
  for (const line of endedActionLines(actions, paint)) context.out(line);
}

/** Names the command that shows what nodes have returned: the results of their calls are no messages. */
function noteNodeValues(
  context: CliContext,
  run: RunReading,
  nodes: readonly PlacedNodeStep[],
): void {
  const makesOwn = (run.view.state?.config.definition.graph?.nodes ?? []).filter(
    // A tool node without arguments executes the call of the model, whose result is a message.
    (node) => node.kind === 'execute' || (node.kind === 'tool' && node.arguments !== undefined),
  );
  const own = new Set(makesOwn.map(({ name }) => name));
  const callers = new Set(
    nodes.flatMap((step) => (step.type === 'node-ended' && own.has(step.node) ? [step.node] : [])),
  );
  if (callers.size === 0 || context.options.json) return;
  const values = nextCommandOf(context, ['graph', `--run=${run.id}`, '--json']);
  const names = [...callers].map(visible).join(', ');
  context.note(
    `Calls of the node${callers.size === 1 ? '' : 's'} ${names} are not in the messages. See their results with: ${values}`,
  );
}

/** Returns the calls whose undo was requested, with who has requested it last, as far as the run knows. */
function requestedUndos(run: RunReading): readonly RequestedUndo[] {
  const { decisions = [] } = run.view.state ?? {};
  const { undoable = [] } = toRunStatus(run, Date.now());
  return undoable.flatMap(({ state: reached, ...undo }) => {
    if (reached === undefined) return [];
    const made = decisions.findLast(({ what, call }) => what === 'undo' && call === undo.call);
    return [{ ...undo, state: reached, ...actorOf(made ?? {}) }];
  });
}

/** Returns where the newest segment begins; undefined if the run has only one segment. */
function segmentMark({ view }: RunReading): SegmentMark | undefined {
  const { segments = 1, segmentFrom } = view.state ?? {};
  if (segmentFrom === undefined || segments === 1) return undefined;
  return { number: segments, from: segmentFrom.message };
}

function checkRange(range: Readonly<Record<string, number | undefined>>): void {
  for (const [option, value] of Object.entries(range)) {
    if (value === undefined || (Number.isInteger(value) && value >= 0)) continue;
    throw new UsageError(`${option}: expected a whole number from 0, got ${value}`);
  }
}

/** Throws a `UsageError` for options that have no effect with `--calls` or `--turns`. */
function checkView({ calls, turns, from, until: to, full, side }: TranscriptOptions): void {
  if (calls) expectNone('--calls', { '--turns': turns, '--side': side });
  if (turns)
    expectNone('--turns', { '--from': from, '--until': to, '--full': full, '--side': side });
}

function expectNone(option: string, others: Readonly<Record<string, unknown>>): void {
  for (const [other, value] of Object.entries(others)) {
    if (value === undefined || value === false) continue;
    throw new UsageError(`${option}: expected no ${other}, got both; omit one of the two`);
  }
}
