import type { Client } from '@temporalio/client';
import { InputError } from '../core/errors.js';
import { show } from '../core/input/input.js';
import { visible } from '../core/state/summaries.js';
import { createStepEmitter } from './emit-steps.js';
import { type FollowedSegment, nextRunId, segmentEvents } from './follow-history.js';
import type { DurableEvent } from './durable-steps.js';
import type { HistoryEvent } from './history-event.js';
import { describeRun } from './read-run.js';
import { isNotFound, oldestKeptSegment } from './segments.js';

/** A place in a run's history: one of the steps that event `event` of a segment adds. */
export interface Offset {
  readonly runId: string;
  readonly event: number;
  /** From 0. */
  readonly index: number;
}

function writeOffset({ runId, event, index }: Offset): string {
  return `${runId}:${event}:${index}`;
}

/** Parses a text from `writeOffset`. Throws an `InputError` for any other text. */
export function readOffset(text: string): Offset {
  const [, runId, event, index] = /^([\w-]{1,64}):(\d{1,15}):(\d{1,15})$/.exec(text) ?? [];
  if (runId === undefined) {
    throw new InputError(
      `from: expected the offset of an event, got ${show(text)}; omit it for all events`,
    );
  }
  return { runId, event: Number(event), index: Number(index) };
}

/** Whether `one` comes after `other`; both are of the same segment. */
function isAfter(one: Offset, other: Offset): boolean {
  return one.event > other.event || (one.event === other.event && one.index > other.index);
}

/** Where the events of a run begin, and what ends the iteration. */
export interface EventsOptions {
  /** The `offset` of the last known event; default: all events that the server still keeps. */
  readonly from?: string;
  /** Ends the iteration. The run is not affected. Default: none. */
  readonly signal?: AbortSignal;
}

/**
 * Yields the durable events of a run, past and future, through all its segments. It follows the
 * history by long polling and needs no worker. Ends after `run-ended`. With `from`, yields exactly
 * the events after that one. Rejects with a `NoRunError`, and with an `InputError` for an offset
 * that does not exist or is no longer kept.
 */
export async function* followEvents(
  client: Client,
  id: string,
  { from, signal = new AbortController().signal }: EventsOptions,
): AsyncGenerator<DurableEvent, void, undefined> {
  const after = from === undefined ? null : readOffset(from);
  const { runId: newest } = await describeRun(client, id);
  const first = after?.runId ?? (await oldestKeptSegment(client, id, newest));
  for await (const steps of followSteps(client, { id, runId: first, signal })) {
    yield* after === null ? steps.steps : stepsAfter(steps, after);
  }
}

/** Yields the durable events of a run that have happened, as far as the server keeps them. Rejects with a `NoRunError`. */
export async function* pastEvents(
  client: Client,
  id: string,
): AsyncGenerator<DurableEvent, void, undefined> {
  const { runId: newest, historyLength } = await describeRun(client, id);
  const runId = await oldestKeptSegment(client, id, newest);
  const { signal } = new AbortController();
  for await (const next of followSteps(client, { id, runId, signal })) {
    yield* next.steps;
    if (next.runId === newest && next.event.id >= historyLength) return;
  }
}

/** Returns the events after an offset, which is in the same segment as these or in an earlier one. */
export function stepsAfter({ runId, steps }: EventSteps, after: Offset): readonly DurableEvent[] {
  if (after.runId !== runId) return steps;
  return steps.filter((step) => isAfter(readOffset(step.offset), after));
}

/** A history event with the durable events that it adds. */
export interface EventSteps {
  /** Run id of the segment. */
  readonly runId: string;
  readonly event: HistoryEvent;
  readonly steps: readonly DurableEvent[];
}

/** Yields the history events of a run, starting with one segment, for `followEvents`. */
export async function* followSteps(
  client: Client,
  { id, runId: first, signal }: FollowedSegment,
): AsyncGenerator<EventSteps, void, undefined> {
  for (let runId: string | null = first; runId !== null;) {
    const segment: string = runId;
    const emit = createStepEmitter(segment);
    let last: HistoryEvent | undefined;
    for await (const event of followSegment(client, { id, runId: segment, signal })) {
      last = event;
      const steps = emit(event).map((step, index) => ({
        ...step,
        offset: writeOffset({ runId: segment, event: event.id, index }),
        at: event.at,
      }));
      yield { runId: segment, event, steps };
    }
    if (signal.aborted) return;
    runId = nextRunId(last);
  }
}

async function* followSegment(
  client: Client,
  segment: FollowedSegment,
): AsyncGenerator<HistoryEvent, void, undefined> {
  try {
    for await (const events of segmentEvents(client, segment)) yield* events;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const message = `from: the server does not keep this part of run ${visible(segment.id)}; omit it`;
    throw new InputError(message, { cause: error });
  }
}
