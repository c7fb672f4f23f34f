import type { Client } from '@temporalio/client';
import { visible } from '../core/text/summaries.js';
import { nextRunId, segmentEvents, type FollowOptions } from './follow-history.js';
import type { HistoryEvent } from './decode-event.js';
import { isAfter, readOffset, writeOffset } from './offset.js';
import { describeRun } from './read-run.js';
import type { DurableEvent } from './durable-events.js';
import { InputError } from '../core/errors.js';
import { isNotFound, oldestKeptSegment } from './segments.js';
import { createStepEmitter } from './emit-steps.js';

export interface EventsOptions {
  /** The `offset` of the last event that is known; default: all that the server still keeps. */
  readonly from?: string;
  /** Ends the iteration; the run does not notice. */
  readonly signal?: AbortSignal;
}

/**
 * The durable steps of a run, those that were and those to come, through all its segments, by the
 * history's long poll: it needs no worker. Ends after `run-ended`. With `from`, exactly the events
 * behind that one. Rejects with a `NoRunError`, and with an `InputError` for an offset that there is
 * not, or not any more.
 */
export async function* followEvents(
  client: Client,
  id: string,
  { from, signal = new AbortController().signal }: EventsOptions,
): AsyncGenerator<DurableEvent, void, undefined> {
  const after = from === undefined ? null : readOffset(from);
  const { runId: newest } = await describeRun(client, id);
  const first = after?.runId ?? (await oldestKeptSegment(client, id, newest));
  for await (const { runId, events } of followSteps(client, { id, runId: first, signal })) {
    for (const event of events) {
      if (after?.runId !== runId || isAfter(readOffset(event.offset), after)) yield event;
    }
  }
}

/** A fact of a history with the durable steps that it tells of. */
export interface EventSteps {
  /** Of the segment. */
  readonly runId: string;
  readonly fact: HistoryEvent;
  readonly events: readonly DurableEvent[];
}

/** The facts of a run from one segment on, as `followEvents` follows them. */
export async function* followSteps(
  client: Client,
  { id, runId: first, signal }: FollowOptions,
): AsyncGenerator<EventSteps, void, undefined> {
  for (let runId: string | null = first; runId !== null;) {
    const segment: string = runId;
    const tell = createStepEmitter(segment);
    let last: HistoryEvent | undefined;
    for await (const fact of segmentOf(client, { id, runId: segment, signal })) {
      last = fact;
      const events = tell(fact).map((step, index) => ({
        ...step,
        offset: writeOffset({ runId: segment, event: fact.id, index }),
        at: fact.at,
      }));
      yield { runId: segment, fact, events };
    }
    if (signal.aborted) return;
    runId = nextRunId(last);
  }
}

async function* segmentOf(
  client: Client,
  segment: FollowOptions,
): AsyncGenerator<HistoryEvent, void, undefined> {
  try {
    for await (const facts of segmentEvents(client, segment)) yield* facts;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const message = `from: the server keeps no such part of run ${visible(segment.id)}, or not any more; leave it out`;
    throw new InputError(message, { cause: error });
  }
}
