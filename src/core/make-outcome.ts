import type { Json } from './json.js';
import type { BlobRef } from './transcript/messages.js';
import type { FailReason, Outcome, OutcomeBody, StopReason } from './outcome.js';
import type { RunState } from './state.js';

interface Given {
  readonly answer: string;
  readonly blob?: BlobRef | undefined;
  readonly output?: Json | undefined;
}

export function completed(state: RunState, given: Given & { reason: 'answer' | 'tool' }): Outcome {
  return { status: 'completed', reason: given.reason, ...body(state, given) };
}

export function stopped(state: RunState, reason: StopReason, answer: string): Outcome {
  return { status: 'stopped', reason, ...body(state, { answer }) };
}

/** The best text at hand goes along: what the model said last in this turn. */
export function cancelled(state: RunState): Outcome {
  return { status: 'cancelled', reason: 'cancelled', ...body(state, lastText(state)) };
}

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

/** The end of an open run that takes no more messages: the last turn's answer, the whole run's spend. */
export function closed(state: RunState): Outcome {
  return { status: 'completed', reason: 'closed', ...runBody(state) };
}

/** The end of an open run from outside its turns. */
export function runCancelled(state: RunState): Outcome {
  return { status: 'cancelled', reason: 'cancelled', ...runBody(state) };
}

export function runStopped(state: RunState, reason: StopReason): Outcome {
  return { status: 'stopped', reason, ...runBody(state) };
}

function runBody(state: RunState): OutcomeBody {
  const { total, segments, turn } = state;
  return {
    answer: turn.outcome?.answer ?? null,
    ...(turn.outcome?.blob && { blob: turn.outcome.blob }),
    output: turn.outcome?.output ?? null,
    ...total,
    segments,
    ...templateOf(state),
  };
}

function templateOf({ config }: RunState): Pick<OutcomeBody, 'template'> {
  const { template } = config.definition;
  return template === undefined ? {} : { template: template.hash };
}

function body(state: RunState, given: Given | null): OutcomeBody {
  const { spent } = state.turn;
  return {
    answer: given?.answer ?? null,
    ...(given?.blob && { blob: given.blob }),
    output: given?.output ?? null,
    steps: spent.steps,
    toolCalls: spent.toolCalls,
    usage: spent.usage,
    segments: state.segments,
    ...templateOf(state),
  };
}

function lastText(state: RunState): Given | null {
  const last = state.transcript.messages.findLast(
    (message) =>
      message.turn === state.turn.number && message.role === 'assistant' && message.text !== '',
  );
  return last === undefined ? null : { answer: last.text };
}
