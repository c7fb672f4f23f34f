import type { Client } from '@temporalio/client';
import type { ModelSettings } from '../core/definition/definition.js';
import { NoRunError, UnreadableError } from '../core/errors.js';
import type { NodeVisit } from '../core/definition/graph-definition.js';
import { type BegunVisit, forkableVisit, visitBegun } from '../core/state/fork.js';
import type { ForkPoint, RecordedDecision } from '../core/state/state.js';
import { visible } from '../core/state/summaries.js';
import type { TranscriptPage, TranscriptRange } from '../core/state/status.js';
import {
  type BlobRef,
  type Message,
  type RunArtifact,
  type ToolCall,
  isSide,
} from '../core/transcript/messages.js';
import type { AttemptReport, Outcome } from '../core/transcript/outcome.js';
import { type CallPair, callPairs } from '../core/transcript/transcript.js';
import { type Archive, ArchiveError, type BlobStore } from '../storage/blob-store.js';
import { likelyMeant } from '../validation/near-names.js';
import type { HistoryEvent } from './history-event.js';
import { reportsByTurn } from './reader/attempts.js';
import { type EndedTurnOf, type Projection, createProjector } from './projection.js';
import { type RunReading, readRun } from './read-run.js';
import { readBegun, writtenByNewer } from './reader/run-view.js';
import { previousRunId, readSegment } from './segments.js';

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
  /** People's decisions about the calls of the messages, oldest first; absent if there are none. */
  readonly decisions?: readonly RecordedDecision[];
}

export type TranscriptRequest = TranscriptRange & { readonly archive: Archive };

/**
 * Reads the messages of a run through all its segments, from the server and, for deleted segments,
 * from the archive. A summary for the model appears at the place where it was created, with
 * `compacts`. Refused answers also have numbers, but are omitted unless `side` is set. The messages
 * of a forked run begin with those of its source. Needs no worker. Rejects with an `UnreadableError`
 * for a run that a newer version of perdure wrote.
 */
export async function readTranscript(
  client: Client,
  run: RunReading,
  { archive, side = false, ...range }: TranscriptRequest,
): Promise<RunTranscript> {
  const newer = writtenByNewer(run.events);
  if (newer !== null) throw new UnreadableError(newer);
  const { transcript, forkedFrom, artifacts } = run.view.state ?? {};
  const total = transcript?.next ?? 0;
  const bounds = { from: Math.max(0, range.from ?? 0), to: Math.min(range.to ?? total, total) };
  const ownFrom = forkedFrom?.at ?? 0;
  const found = new Map<number, Message>();
  const decisions: RecordedDecision[] = [];
  await addOwn(
    { found, decisions },
    { client, archive, run },
    { ...bounds, from: Math.max(bounds.from, ownFrom) },
  );
  if (forkedFrom !== undefined && bounds.from < ownFrom) {
    const before = { from: bounds.from, to: Math.min(bounds.to, ownFrom) };
    const source = await readSource(client, forkedFrom, { ...before, archive });
    add(found, source?.messages ?? []);
    decisions.unshift(...(source?.decisions ?? []));
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
    ...(decisions.length > 0 && { decisions }),
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
  { found, decisions }: { found: Map<number, Message>; decisions: RecordedDecision[] },
  { client, archive, run }: { client: Client; archive: Archive; run: RunReading },
  bounds: Range,
): Promise<void> {
  add(found, run.view.messages);
  decisions.unshift(...aboutCalls(run.view));
  let runId = startOf(run).previousRunId;
  while (runId !== '' && gapIn(found, bounds) !== null) {
    const segment = await readSegment(client, { id: run.id, runId, archive }).catch(asMissing);
    if (segment === null) break;
    add(found, segment.view.messages);
    decisions.unshift(...aboutCalls(segment.view));
    runId = segment.previousRunId;
  }
}

/** Returns the decisions of a segment that have decided about a call. */
function aboutCalls({ decisions }: Pick<Projection, 'decisions'>): readonly RecordedDecision[] {
  return decisions
    .map(({ decision }) => decision)
    .filter(({ what, call, refused }) => {
      return what === 'resolve' && call !== undefined && refused === undefined;
    });
}

/** Returns null if neither the server nor the archive keeps the run. */
async function readSource(
  client: Client,
  { run, runId: firstRunId }: ForkPoint,
  request: TranscriptRequest,
): Promise<Pick<RunTranscript, 'messages' | 'decisions'> | null> {
  try {
    const source = await readRun(client, run, { archive: request.archive, firstRunId });
    return await readTranscript(client, source, { ...request, side: true });
  } catch (error) {
    if (error instanceof NoRunError) return null;
    return asMissing(error);
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

/**
 * Reads the state of a run at the beginning of a visit of a node, from the server or the archive. The
 * problem says why the run cannot be forked there. Needs no worker.
 */
export async function readVisit(
  client: Client,
  run: RunReading,
  { archive, ...place }: NodeVisit & { readonly archive: Archive },
): Promise<BegunVisit | { readonly problem: string }> {
  const { state } = run.view;
  const name = visible(run.id);
  if (state === null) return { problem: `fork.run: run "${name}" has not begun; fork it later` };
  const found = forkableVisit(state, place, likelyMeant);
  if ('problem' in found) return found;
  let events: readonly HistoryEvent[] = run.events;
  for (;;) {
    const visit = findVisit(events, place.node, found.visit);
    if (visit !== null && visit !== 'earlier') return visit;
    const runId = previousRunId(events);
    const segment =
      visit === null || runId === ''
        ? null
        : await readSegment(client, { id: run.id, runId, archive }).catch(asMissing);
    if (segment === null) {
      return {
        problem:
          `fork.at: the part of run "${name}" in which visit ${found.visit} of node "${place.node}" ` +
          'began is missing: neither the server nor the archive still has it; fork at a later visit',
      };
    }
    ({ events } = segment);
  }
}

/** Finds the beginning of a visit in a segment; `earlier` if it began in an earlier segment. */
function findVisit(
  events: readonly HistoryEvent[],
  node: string,
  visit: number,
): BegunVisit | 'earlier' | null {
  const [started] = events;
  const carried = started?.type === 'started' ? readBegun(started)?.before?.state : undefined;
  if (carried !== undefined && visitBegun(carried, node, visit) !== null) return 'earlier';
  const projector = createProjector();
  const begunIn = ({ state }: Projection): BegunVisit | null =>
    state && visitBegun(state, node, visit);
  for (const event of events) {
    projector.push(event);
    const begun = begunIn(projector.processed());
    if (begun !== null) return begun;
  }
  return begunIn(projector.view());
}

/** Treats messages in an archive that is down as missing. */
export function asMissing(error: unknown): null {
  if (error instanceof ArchiveError) return null;
  throw error;
}

/** An ended turn: the agent, its definition, and the outcome. */
export interface TurnRecord {
  /** Number of the turn, from 1. */
  readonly turn: number;
  readonly agent: string;
  /** Hash of the run's pinned agent definition. */
  readonly definition: string;
  readonly model: string;
  /** The settings of the model that were sent with each request. */
  readonly settings: ModelSettings;
  /** The outcome of the turn, with its usage. */
  readonly outcome: Outcome;
  /** Failed attempts at the model calls of the turn, oldest first. */
  readonly reports: readonly AttemptReport[];
  /** When the turn ended: Unix time in ms. */
  readonly at: number;
}

/** The turns of a run that have ended. */
export interface TurnLog {
  /** Oldest first. */
  readonly turns: readonly TurnRecord[];
  /** Whether a part of the run is missing, because neither the server nor the archive keeps it. */
  readonly incomplete: boolean;
}

/**
 * Reads the turns of a run through all its segments, from the server and from the archive. Needs no
 * worker.
 */
export async function readTurns(
  client: Client,
  run: RunReading,
  archive: Archive,
): Promise<TurnLog> {
  const found = new Map<number, EndedTurnOf>();
  const reports = new Map<number, AttemptReport[]>();
  const read = ({ view, events }: Pick<RunReading, 'view' | 'events'>): void => {
    for (const turn of view.turns) if (!found.has(turn.turn)) found.set(turn.turn, turn);
    for (const [turn, report] of reportsByTurn(events)) {
      reports.set(turn, [...(reports.get(turn) ?? []), report]);
    }
  };
  read(run);
  let runId = previousRunId(run.events);
  while (runId !== '') {
    const segment = await readSegment(client, { id: run.id, runId, archive }).catch(asMissing);
    if (segment === null) break;
    read(segment);
    runId = segment.previousRunId;
  }
  const turns = [...found.values()].map(({ turn, outcome, definition, settings, at }) => ({
    turn,
    agent: definition.name,
    definition: definition.hash,
    model: definition.model,
    settings,
    outcome,
    reports: (reports.get(turn) ?? []).toSorted((one, other) => one.at - other.at),
    at,
  }));
  return { turns: turns.toSorted((one, other) => one.turn - other.turn), incomplete: runId !== '' };
}

/**
 * Returns the messages with the full texts from the blob store. A text that cannot be read stays in
 * the model's form, shortened to head and tail; `onMissing` is called with the reason.
 */
export async function withFullText(
  messages: readonly Message[],
  blobs: BlobStore,
  onMissing: (why: string) => void,
): Promise<readonly Message[]> {
  return await Promise.all(messages.map(async (message) => await expand(message)));

  async function expand(message: Message): Promise<Message> {
    const text = await textOf(message, message.text);
    if (message.role !== 'assistant' || message.calls === undefined) return { ...message, text };
    return { ...message, text, calls: await Promise.all(message.calls.map(expandCall)) };
  }

  async function expandCall(call: ToolCall): Promise<ToolCall> {
    return { ...call, arguments: await textOf(call, call.arguments) };
  }

  async function textOf({ blob }: { readonly blob?: BlobRef }, shown: string): Promise<string> {
    if (blob === undefined) return shown;
    try {
      return await blobs.get(blob);
    } catch (error) {
      onMissing(error instanceof Error ? error.message : String(error));
      return shown;
    }
  }
}
