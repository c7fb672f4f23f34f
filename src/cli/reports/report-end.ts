import { join } from 'node:path';
import { endOfRun } from '../../history/end-of-run.js';
import type { Projection } from '../../history/projection.js';
import { parseJson } from '../../core/json.js';
import type { Outcome } from '../../core/outcome.js';
import type { EndedTurn } from '../../core/state.js';
import { visible } from '../../core/text/summaries.js';
import { printable } from '../../core/text/hidden.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { palette, type Palette } from '../format/output.js';
import { formatCount, formatDuration, formatUsage } from '../format/format.js';

/** A run that is over. */
export interface EndedRun {
  readonly id: string;
  readonly runId: string;
  readonly view: Projection;
  /** Why somebody terminated it, where that is known. */
  readonly terminatedWhy?: string;
}

const CODES: Readonly<Record<Outcome['status'], ExitCode>> = {
  completed: EXIT.completed,
  stopped: EXIT.stopped,
  cancelled: EXIT.cancelled,
  failed: EXIT.failed,
};

/** Prints how a run ended: with `--json` one line, else the answer as data and the rest as talk. */
export async function reportEnd(context: CliContext, run: EndedRun): Promise<ExitCode> {
  const { id, runId, view } = run;
  const end = endOfRun({ terminatedWhy: '', ...run });
  if (end === null) throw new Error(`run ${visible(id)} has not ended`);
  const { outcome } = end;
  // A segment's first event is not the run's.
  const begunAt = view.state?.startedAt || view.startedAt;
  const tookMs = view.ended && begunAt !== null ? view.ended.at - begunAt : 0;
  return await report(context, { outcome, tookMs, title: '', told: { ...outcome, id, runId } });
}

/** A turn of a run that lives on. */
export interface ReportedTurn extends EndedTurn {
  readonly id: string;
  readonly runId: string;
  readonly view: Projection;
  /** Of the message that the turn answers, where this command sent it. */
  readonly messageId?: string | undefined;
}

/** Prints how a turn ended, like the end of a run. */
export async function reportTurn(context: CliContext, over: ReportedTurn): Promise<ExitCode> {
  const { id, runId, view, turn, outcome, messageId } = over;
  const times = view.said.filter((message) => message.turn === turn).map(({ at }) => at);
  const tookMs = times.length === 0 ? 0 : Math.max(...times) - Math.min(...times);
  const told = { ...outcome, id, runId, turn, ...(messageId !== undefined && { messageId }) };
  return await report(context, { outcome, tookMs, title: `turn ${turn} `, told });
}

interface Report {
  readonly outcome: Outcome;
  readonly tookMs: number;
  /** Before the word that says how it ended. */
  readonly title: string;
  /** For `--json`. */
  readonly told: object;
}

async function report(context: CliContext, given: Report): Promise<ExitCode> {
  const { outcome, told } = given;
  context.note(endLine(given, palette(context.color)));
  if (context.options.json) {
    context.out(JSON.stringify(told));
  } else {
    const answer = readable(await wholeAnswer(context, outcome), outcome);
    // Whoever needs each character as the model wrote it takes `--json`.
    if (answer !== null) context.out(printable(answer));
  }
  return CODES[outcome.status];
}

function endLine({ outcome, tookMs, title }: Report, paint: Palette): string {
  const { status, reason, steps, toolCalls, usage, error } = outcome;
  const word = `${title}${status === reason ? status : `${status} (${reason})`}`;
  const color = {
    completed: paint.green,
    failed: paint.red,
    stopped: paint.yellow,
    cancelled: paint.yellow,
  };
  const figures = [formatCount(steps, 'step'), formatCount(toolCalls, 'call'), formatUsage(usage), formatDuration(tookMs)];
  return [
    color[status](error === undefined ? word : `${word}: ${visible(error)}`),
    paint.dim(figures.join(' · ')),
  ].join(' · ');
}

/** What a tool gave is data; people read it with a line for each part of it. */
function readable(answer: string | null, { reason }: Outcome): string | null {
  const value = answer === null || reason !== 'tool' ? null : parseJson(answer);
  return typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : answer;
}

/** A large answer lies in the blob store; where that is elsewhere, its head and tail must do. */
async function wholeAnswer(context: CliContext, outcome: Outcome): Promise<string | null> {
  const { answer, blob } = outcome;
  if (blob === undefined) return answer;
  const { fileBlobStore } = await import('../../storage/file-blob-store.js');
  try {
    return await fileBlobStore(join(context.home, 'blobs')).get(blob);
  } catch (error) {
    context.note(
      `The answer is shown in part: ${error instanceof Error ? error.message : String(error)}`,
    );
    return answer;
  }
}
