import type { Client } from '@temporalio/client';
import { visible } from '../core/summaries.js';
import { nextRunId, segmentFacts } from './follow-facts.js';
import { isAfter, readOffset, writeOffset, type Offset } from './offset.js';
import { describeRun } from './read-run.js';
import type { DurableEvent } from './run-events.js';
import { InputError } from './run-input.js';
import { isGone, oldestKept } from './segments.js';
import { stepTeller } from './tell-steps.js';

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
  const first = after?.runId ?? (await oldestKept(client, id, newest));
  for (let runId: string | null = first; runId !== null;) {
    let next: string | null = null;
    for await (const events of segmentEvents(client, { id, runId, signal })) {
      for (const { event, place } of events.told) {
        if (after?.runId !== runId || isAfter(place, after)) yield event;
      }
      ({ next } = events);
    }
    if (signal.aborted) return;
    runId = next;
  }
}

interface ToldPage {
  readonly told: readonly { readonly event: DurableEvent; readonly place: Offset }[];
  readonly next: string | null;
}

async function* segmentEvents(
  client: Client,
  segment: { readonly id: string; readonly runId: string; readonly signal: AbortSignal },
): AsyncGenerator<ToldPage, void, undefined> {
  const { id, runId } = segment;
  const tell = stepTeller(runId);
  try {
    for await (const facts of segmentFacts(client, segment)) {
      const told = facts.flatMap((fact) =>
        tell(fact).map((step, index) => {
          const place = { runId, event: fact.id, index };
          return { event: { ...step, offset: writeOffset(place), at: fact.at }, place };
        }),
      );
      yield { told, next: nextRunId(facts.at(-1)) };
    }
  } catch (error) {
    if (!isGone(error)) throw error;
    const message = `from: the server keeps no such part of run ${visible(id)}, or not any more; leave it out`;
    throw new InputError(message, { cause: error });
  }
}
