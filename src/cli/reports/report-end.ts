import { endOfRun } from '../../history/end-of-run.js';
import type { Projection } from '../../history/projection.js';
import { parseJson } from '../../core/json.js';
import type { Outcome } from '../../core/outcome.js';
import type { FinishedTurn } from '../../core/state.js';
import { statusText } from '../../core/status.js';
import { visible } from '../../core/text/summaries.js';
import { printable } from '../../core/text/hidden.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { palette, type Palette } from '../format/output.js';
import { formatCount, formatDuration, formatUsage } from '../format/format.js';

/** A run that has ended. */
export interface EndedRun {
  readonly id: string;
  readonly runId: string;
  readonly view: Projection;
  /** Why the run was terminated, if that is known. */
  readonly terminatedWhy?: string;
}

const CODES: Readonly<Record<Outcome['status'], ExitCode>> = {
  completed: EXIT.completed,
  stopped: EXIT.stopped,
  cancelled: EXIT.cancelled,
  failed: EXIT.failed,
};

/** Reports how a run ended: as one line of data with `--json`, else as the answer and a message. */
export async function reportEnd(context: CliContext, run: EndedRun): Promise<ExitCode> {
  const { id, runId, view } = run;
  const end = endOfRun({ terminatedWhy: '', ...run });
  if (end === null) throw new Error(`run ${visible(id)} has not ended`);
  const { outcome } = end;
  // The first event of a later segment is not the start of the run.
  const startedAt = view.state?.startedAt || view.startedAt;
  const tookMs = view.ended && startedAt !== null ? view.ended.at - startedAt : 0;
  return await report(context, { outcome, tookMs, title: '', line: { ...outcome, id, runId } });
}

/** An ended turn of a run that continues. */
export interface ReportedTurn extends FinishedTurn {
  readonly id: string;
  readonly runId: string;
  readonly view: Projection;
  /** The id of the message that the turn answers, if this command sent it. */
  readonly messageId?: string | undefined;
}

/** Reports how a turn ended, in the same form as `reportEnd`. */
export async function reportTurn(context: CliContext, ended: ReportedTurn): Promise<ExitCode> {
  const { id, runId, view, turn, outcome, messageId } = ended;
  const times = view.messages.filter((message) => message.turn === turn).map(({ at }) => at);
  const tookMs = times.length === 0 ? 0 : Math.max(...times) - Math.min(...times);
  const line = { ...outcome, id, runId, turn, ...(messageId !== undefined && { messageId }) };
  return await report(context, { outcome, tookMs, title: `turn ${turn} `, line });
}

interface Report {
  readonly outcome: Outcome;
  readonly tookMs: number;
  /** Text before the status. */
  readonly title: string;
  /** The line for `--json`. */
  readonly line: object;
}

async function report(context: CliContext, result: Report): Promise<ExitCode> {
  const { outcome, line } = result;
  context.note(endLine(result, palette(context.color)));
  if (context.options.json) {
    context.out(JSON.stringify(line));
  } else {
    const answer = formatAnswer(await fullAnswer(context, outcome), outcome);
    // Programs that need every character as the model wrote it use `--json`.
    if (answer !== null) context.out(printable(answer));
  }
  return CODES[outcome.status];
}

function endLine({ outcome, tookMs, title }: Report, paint: Palette): string {
  const { status, steps, toolCalls, usage, error, lost = [] } = outcome;
  const text = `${title}${statusText(outcome)}`;
  const color = {
    completed: paint.green,
    failed: paint.red,
    stopped: paint.yellow,
    cancelled: paint.yellow,
  };
  const figures = [
    formatCount(steps, 'step'),
    formatCount(toolCalls, 'call'),
    formatUsage(usage),
    formatDuration(tookMs),
  ];
  const end = [
    color[status](error === undefined ? text : `${text}: ${visible(error)}`),
    paint.dim(figures.join(' · ')),
  ].join(' · ');
  return [end, ...lost.map((loss) => paint.yellow(`lost: ${visible(loss)}`))].join('\n');
}

/** Returns the answer, indented if it is JSON that a tool returned; null if there is none. */
function formatAnswer(answer: string | null, { reason }: Outcome): string | null {
  const value = answer === null || reason !== 'tool' ? null : parseJson(answer);
  return typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : answer;
}

/**
 * Reads a large answer from the blob store. Falls back to its head and tail if the store is
 * elsewhere.
 */
async function fullAnswer(context: CliContext, outcome: Outcome): Promise<string | null> {
  const { answer, blob } = outcome;
  if (blob === undefined) return answer;
  const { openStores } = await import('../../storage/file-stores.js');
  try {
    return await openStores(context.home, context.env).blobs.get(blob);
  } catch (error) {
    context.note(
      `The answer is truncated: ${error instanceof Error ? error.message : String(error)}`,
    );
    return answer;
  }
}
