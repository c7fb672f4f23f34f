import { isToolResult } from '../core/guards/recorded.js';
import type { RunToolResult } from '../core/run/contract.js';
import { screenshotNote } from '../core/state/summaries.js';
import { type Json, errorIn, isObject, parseJson } from '../core/text/json.js';
import { type ToolSuccess, errorText, lostMessage } from '../core/transcript/call-result.js';
import { isCall } from '../core/transcript/message-shapes.js';
import type { ToolCall } from '../core/transcript/messages.js';
import { artifact, defaultArtifactName, screenshot } from '../tools/built-in/artifact.js';
import type { RecordedResult } from '../tools/tool.js';
import { type ComparedCall, comparedCall } from './divergence-text.js';
import type { RecordedRun, Recording } from './recording.js';

/** A recorded result, and whether a call of the rerun has got it. */
export interface OpenResult extends ComparedCall {
  readonly run: string;
  /** The id of the call, which is unique in its run. */
  readonly call: string;
  readonly turn: number;
  readonly step: number;
  readonly result: ExecutedResult;
  isUsed: boolean;
}

/** The end of an execution; a call that was only checked, or was not begun, has none. */
type ExecutedResult = Exclude<RunToolResult, { readonly ok: 'undecided' | 'input_required' }>;

function isExecuted(result: unknown): result is ExecutedResult {
  if (!isToolResult(result)) return false;
  return result.ok === true || result.ok === false || result.ok === 'unknown';
}

interface EndedCall extends Pick<OpenResult, 'result' | 'turn' | 'step'> {
  readonly call: ToolCall;
}

/** Returns the results of a run in the order of its calls. */
export function recordedResults(run: RecordedRun, { blobs }: Recording): readonly OpenResult[] {
  const ended = run.facts.flatMap((fact, index): readonly EndedCall[] => {
    if (fact.type === 'result') {
      const { call, result, turn, step } = fact;
      return isExecuted(result) ? [{ call, result, turn, step }] : [];
    }
    if (fact.type !== 'failure' || fact.activity !== 'runTool' || !isObject(fact.input)) return [];
    const { call, turn, step, effect } = fact.input;
    if (!isCall(call)) return [];
    const isTimeout = fact.error.type === '';
    const isTriedAgain = run.facts
      .slice(index + 1)
      .some((later) => later.type === 'result' && later.call.id === call.id);
    // What has blocked a call was no end of it.
    if (!isTimeout && isTriedAgain) return [];
    const result = lostResult(call.name, { ...fact.error, isTimeout, effect });
    return [{ call, result, turn: Number(turn ?? 0), step: Number(step ?? 0) }];
  });
  const order = run.messages.flatMap((one) =>
    one.role === 'assistant' ? (one.calls ?? []).map(({ id }) => id) : [],
  );
  return ended
    .toSorted((one, other) => order.indexOf(one.call.id) - order.indexOf(other.call.id))
    .map(({ call, ...rest }) => {
      const { parsed, blob } = call;
      const large = (parsed === undefined ? blob : parsed.blob)?.sha256;
      const args = parsed?.arguments ?? call.arguments;
      const whole = large === undefined ? args : (blobs[large] ?? args);
      const compared = comparedCall({ name: call.name, arguments: whole });
      return { ...compared, ...rest, run: run.id, call: call.id, isUsed: false };
    });
}

/** Returns what a run makes of a call whose worker has died, or that timed out; see `callFailed`. */
function lostResult(
  tool: string,
  {
    message,
    isTimeout,
    effect,
  }: { readonly message: string; readonly isTimeout: boolean; readonly effect: unknown },
): ExecutedResult {
  const lost = lostMessage(tool, message);
  if (effect === 'once' || (effect === 'keyed' && isTimeout)) {
    return { ok: 'unknown', message: lost };
  }
  const error = isTimeout
    ? ({ type: 'timeout', message: lost } as const)
    : ({ type: 'tool_error', message } as const);
  return { ok: false, text: errorText(error) };
}

/** Returns what a tool returned, or why it threw. */
export function endOf(result: ExecutedResult, recording: Recording): RecordedResult['end'] {
  if (result.ok === true) return { result: valueOf(result, recording) };
  return { error: result.ok === false ? errorIn(result.text).message : result.message };
}

/** Returns what a tool returned, as far as it is recorded. */
function valueOf({ text, output, artifact: made, blob }: ToolSuccess, { blobs }: Recording): Json {
  const stored = made?.blob ?? blob;
  const whole = stored === undefined ? text : (blobs[stored.sha256] ?? text);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  if (made !== undefined && made.text !== true) return (parseJson(whole) ?? null) as Json;
  return made === undefined ? (output ?? whole) : whole;
}

/** Returns what a tool returned, with its name for an artifact, or as a picture. */
export function returnedBy(tool: string, result: ToolSuccess, recording: Recording): unknown {
  const { artifact: made, attachments: [picture] = [] } = result;
  const value = valueOf(result, recording);
  const base64 = picture && 'blob' in picture ? recording.blobs[picture.blob.sha256] : undefined;
  if (base64 !== undefined && typeof value === 'string') {
    return screenshot(Buffer.from(base64, 'base64'), { text: screenshotNote(value) });
  }
  if (made === undefined) return value;
  const { name, summary } = made;
  return artifact(value, {
    ...(name !== defaultArtifactName(tool) && { name }),
    ...(summary !== undefined && { summary }),
  });
}

/** Resolves when a signal aborts. */
export async function abortOf(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
