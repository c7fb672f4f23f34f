import type { Json } from './json.js';
import type { BlobRef } from './transcript/messages.js';
import type { FailReason, Outcome, OutcomeBody, StopReason } from './outcome.js';
import { stepsOf } from './graph/node-tool.js';
import type { RunState } from './state.js';
import { getOutcome } from './turn.js';

interface Answer {
  readonly answer: string;
  readonly blob?: BlobRef | undefined;
  readonly output?: Json | undefined;
}

/** Returns the outcome of a turn that ends with an answer, or with a tool that has `ends`. */
export function completed(state: RunState, given: Answer & { reason: 'answer' | 'tool' }): Outcome {
  return { status: 'completed', reason: given.reason, ...body(state, given) };
}

/** Returns the outcome of a turn that ends at a limit. */
export function stopped(state: RunState, reason: StopReason, answer: string): Outcome {
  return { status: 'stopped', reason, ...body(state, { answer }) };
}

/** Returns the outcome of a canceled turn, with the model's last text as its answer. */
export function cancelled(state: RunState): Outcome {
  return { status: 'cancelled', reason: 'cancelled', ...body(state, lastText(state)) };
}

/** Returns the outcome of a turn that failed. */
export function failed(
  state: RunState,
  given: { reason: FailReason; message: string; answer?: string },
): Outcome {
  const text = given.answer === undefined || given.answer === '' ? null : { answer: given.answer };
  return {
    status: 'failed',
    reason: given.reason,
    ...body(state, text),
    error: given.message,
  };
}

/**
 * Returns the outcome of an open run that was closed: the last turn's answer, the whole run's
 * usage.
 */
export function closed(state: RunState): Outcome {
  return { status: 'completed', reason: 'closed', ...runBody(state) };
}

/** Returns the outcome of a run that was canceled between its turns. */
export function runCancelled(state: RunState): Outcome {
  return { status: 'cancelled', reason: 'cancelled', ...runBody(state) };
}

/** Returns the outcome of a run that reached a limit between its turns. */
export function runStopped(state: RunState, reason: StopReason): Outcome {
  return { status: 'stopped', reason, ...runBody(state) };
}

function runBody(state: RunState): OutcomeBody {
  const { total, segments } = state;
  const last = getOutcome(state);
  return {
    answer: last?.answer ?? null,
    ...(last?.blob && { blob: last.blob }),
    output: last?.output ?? null,
    ...total,
    segments,
    ...templateOf(state),
    ...(last?.lost && { lost: last.lost }),
  };
}

function templateOf({ config }: RunState): Pick<OutcomeBody, 'template'> {
  const { template } = config.definition;
  return template === undefined ? {} : { template: template.hash };
}

function body(state: RunState, given: Answer | null): OutcomeBody {
  const { spent, lost } = state.turn;
  return {
    answer: given?.answer ?? null,
    ...(given?.blob && { blob: given.blob }),
    output: given?.output ?? null,
    steps: stepsOf(state),
    toolCalls: spent.toolCalls,
    usage: spent.usage,
    segments: state.segments,
    ...templateOf(state),
    ...(lost && { lost }),
  };
}

function lastText(state: RunState): Answer | null {
  const last = state.transcript.messages.findLast(
    (message) =>
      message.turn === state.turn.number &&
      message.role === 'assistant' &&
      message.supplied !== true &&
      message.text !== '',
  );
  return last === undefined ? null : { answer: last.text };
}
