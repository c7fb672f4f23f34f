import type { Client } from '@temporalio/client';
import { ArchiveError, type Archive } from '../storage/archive.js';
import { callPairs, type CallPair } from '../core/transcript/call-pairs.js';
import { isSide, type RunArtifact, type Message } from '../core/transcript/messages.js';
import type { ForkPoint } from '../core/state.js';
import type { TranscriptPage, TranscriptRange } from '../core/status.js';
import { readRun, type RunReading } from './read-run.js';
import { readSegment } from './segments.js';
import { NoRunError } from '../core/errors.js';

/** The messages of a run, with what is missing of them and the artifacts that its tools have made. */
export interface RunTranscript extends TranscriptPage {
  /**
   * The range is complete starting with this number, which is the start of the range if nothing is
   * missing. Messages are missing if neither the server nor the archive keeps them.
   */
  readonly completeFrom: number;
  /**
   * The number of the run's own first message. Earlier ones belong to the run from which it was
   * forked.
   */
  readonly ownFrom: number;
  /**
   * Run id of the first segment. After the server deletes a run, another one may get the same id.
   */
  readonly runId: string;
  /** The artifacts that tools have created, oldest first; absent if there are none. */
  readonly artifacts?: readonly RunArtifact[];
}

export type TranscriptRequest = TranscriptRange & { readonly archive: Archive };

/**
 * Reads the messages of a run through all its segments, from the server and, for deleted segments,
 * from the archive. A summary for the model appears at the place where it was created, with
 * `compacts`. Refused answers also have numbers, but are omitted unless `side` is set. The messages
 * of a forked run begin with those of its source. Needs no worker.
 */
export async function readTranscript(
  client: Client,
  run: RunReading,
  { archive, side = false, ...range }: TranscriptRequest,
): Promise<RunTranscript> {
  const { transcript, forkedFrom, artifacts } = run.view.state ?? {};
  const total = transcript?.next ?? 0;
  const bounds = { from: Math.max(0, range.from ?? 0), to: Math.min(range.to ?? total, total) };
  const ownFrom = forkedFrom?.at ?? 0;
  const found = new Map<number, Message>();
  await addOwn(
    found,
    { client, archive, run },
    { ...bounds, from: Math.max(bounds.from, ownFrom) },
  );
  if (forkedFrom !== undefined && bounds.from < ownFrom) {
    const before = { from: bounds.from, to: Math.min(bounds.to, ownFrom) };
    add(found, await readSource(client, forkedFrom, { ...before, archive }));
  }
  return {
    messages: [...found.values()]
      .filter((message) => side || !isSide(message))
      .filter(({ n }) => n >= bounds.from && n < bounds.to)
      .toSorted((one, other) => one.n - other.n),
    total,
    completeFrom: gapIn(found, bounds)?.to ?? bounds.from,
    ownFrom,
    runId: startOf(run).firstRunId,
    ...(artifacts && { artifacts }),
  };
}

/** Reads the calls that the messages of a range request, with their results. Needs no worker. */
export async function readCalls(
  client: Client,
  run: RunReading,
  { to = Infinity, ...request }: Omit<TranscriptRequest, 'side'>,
): Promise<readonly CallPair[]> {
  // A result follows its call, so it may be outside the range.
  const { messages } = await readTranscript(client, run, request);
  return callPairs(messages).filter(({ n }) => n < to);
}

/** Adds the run's own messages, newest segment first. */
async function addOwn(
  found: Map<number, Message>,
  { client, archive, run }: { client: Client; archive: Archive; run: RunReading },
  bounds: Range,
): Promise<void> {
  add(found, run.view.messages);
  let runId = startOf(run).previousRunId;
  while (runId !== '' && gapIn(found, bounds) !== null) {
    const segment = await readSegment(client, { id: run.id, runId, archive }).catch(asMissing);
    if (segment === null) break;
    add(found, segment.view.messages);
    runId = segment.previousRunId;
  }
}

/** Returns none if neither the server nor the archive keeps the run. */
async function readSource(
  client: Client,
  { run, runId: firstRunId }: ForkPoint,
  request: TranscriptRequest,
): Promise<readonly Message[]> {
  try {
    const source = await readRun(client, run, { archive: request.archive, firstRunId });
    return (await readTranscript(client, source, { ...request, side: true })).messages;
  } catch (error) {
    if (error instanceof NoRunError) return [];
    return asMissing(error) ?? [];
  }
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Adds messages; those of a newer segment, added before, are kept. */
function add(found: Map<number, Message>, messages: readonly Message[]): void {
  for (const message of messages) if (!found.has(message.n)) found.set(message.n, message);
}

/** Returns the range from the first missing number to the last one; null if none is missing. */
function gapIn(found: ReadonlyMap<number, Message>, { from, to }: Range): Range | null {
  let end = to;
  while (end > from && found.has(end - 1)) end -= 1;
  let begin = from;
  while (begin < end && found.has(begin)) begin += 1;
  return begin === end ? null : { from: begin, to: end };
}

function startOf({ events: [started] }: RunReading): {
  previousRunId: string;
  firstRunId: string;
} {
  return started?.type === 'started' ? started : { previousRunId: '', firstRunId: '' };
}

/** Treats messages in an archive that is down as missing. */
function asMissing(error: unknown): null {
  if (error instanceof ArchiveError) return null;
  throw error;
}
