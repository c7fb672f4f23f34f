import type { Client } from '@temporalio/client';
import { ArchiveError, type Archive } from '../storage/archive.js';
import { isSide, type Artifact, type Message } from '../core/transcript/messages.js';
import type { ForkPoint } from '../core/state.js';
import type { TranscriptPage } from '../core/status.js';
import { readRun, type RunReading } from './read-run.js';
import { readSegment } from './segments.js';
import type { TranscriptRange } from './transcript.js';
import { NoRunError } from '../core/errors.js';

export interface RunTranscript extends TranscriptPage {
  /**
   * From this number on nothing is missing up to the end of the range; the range's own beginning
   * where all of it is there. What the server does not keep and no archive has is missing.
   */
  readonly completeFrom: number;
  /** The run's own messages begin here; those before it are of the run that it was forked from. */
  readonly ownFrom: number;
  /** Of the first segment: an id may be given to another run when the server has forgotten this one. */
  readonly runId: string;
  /** What tools have made and later calls can name, oldest first; absent where there is nothing. */
  readonly artifacts?: readonly Artifact[];
}

type Wish = TranscriptRange & { readonly archive: Archive };

/**
 * What was said in a run, by number, through all its segments: from the history, and from the archive
 * what the server does not keep any more. A summary that was made for the model stands where it was
 * made, with `compacts`. Answers that were refused have numbers too, which are left out unless `side`
 * asks for them. Before the messages of a run that was forked stand those of the other one, as it has
 * them. Needs no worker. Rejects with a `NoRunError`.
 */
export async function transcriptOf(
  client: Client,
  id: string,
  { archive, side = false, ...range }: Wish,
): Promise<RunTranscript> {
  const run = await readRun(client, id);
  const { transcript, forkedFrom, artifacts } = run.view.state ?? {};
  const total = transcript?.next ?? 0;
  const wanted = { from: Math.max(0, range.from ?? 0), to: Math.min(range.to ?? total, total) };
  const ownFrom = forkedFrom?.at ?? 0;
  const found = new Map<number, Message>();
  await addOwn(
    found,
    { client, archive, run },
    { ...wanted, from: Math.max(wanted.from, ownFrom) },
  );
  if (forkedFrom !== undefined && wanted.from < ownFrom) {
    const before = { from: wanted.from, to: Math.min(wanted.to, ownFrom) };
    add(found, await messagesOfSource(client, forkedFrom, { ...before, archive }));
  }
  return {
    messages: [...found.values()]
      .filter((message) => side || !isSide(message))
      .filter(({ n }) => n >= wanted.from && n < wanted.to)
      .toSorted((one, other) => one.n - other.n),
    total,
    completeFrom: gapIn(found, wanted)?.to ?? wanted.from,
    ownFrom,
    runId: firstOf(run).firstRunId,
    ...(artifacts && { artifacts }),
  };
}

/** What a run has said itself. */
async function addOwn(
  found: Map<number, Message>,
  { client, archive, run }: { client: Client; archive: Archive; run: RunReading },
  wanted: Stretch,
): Promise<void> {
  add(found, run.view.said);
  let { before } = firstOf(run);
  while (before !== '' && gapIn(found, wanted) !== null) {
    const segment = await readSegment(client, run.id, before);
    if (segment === null) break;
    add(found, segment.view.said);
    before = segment.before;
  }
  const gap = gapIn(found, wanted);
  if (gap !== null) add(found, await archived(client, archive, { run, gap }));
}

/** A younger run of the same id has nothing to do with it. */
async function messagesOfSource(
  client: Client,
  { run, runId }: ForkPoint,
  wish: Wish,
): Promise<readonly Message[]> {
  try {
    if (firstOf(await readRun(client, run)).firstRunId !== runId) return [];
    return (await transcriptOf(client, run, { ...wish, side: true })).messages;
  } catch (error) {
    if (error instanceof NoRunError) return [];
    throw error;
  }
}

interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** What a newer segment has told is not told again. */
function add(found: Map<number, Message>, messages: readonly Message[]): void {
  for (const message of messages) if (!found.has(message.n)) found.set(message.n, message);
}

/** From the first number that is not there to behind the last one. */
function gapIn(found: ReadonlyMap<number, Message>, { from, to }: Stretch): Stretch | null {
  let end = to;
  while (end > from && found.has(end - 1)) end -= 1;
  let begin = from;
  while (begin < end && found.has(begin)) begin += 1;
  return begin === end ? null : { from: begin, to: end };
}

function firstOf({ facts: [started] }: RunReading): { before: string; firstRunId: string } {
  return started?.type === 'started' ? started : { before: '', firstRunId: '' };
}

async function archived(
  client: Client,
  archive: Archive,
  { run, gap }: { run: RunReading; gap: Stretch },
): Promise<readonly Message[]> {
  const { namespace } = client.options;
  try {
    const place = { namespace, id: run.id, firstRunId: firstOf(run).firstRunId };
    return await archive.read(place, gap);
  } catch (error) {
    if (error instanceof ArchiveError) return [];
    throw error;
  }
}
