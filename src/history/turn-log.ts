import type { Client } from '@temporalio/client';
import { ArchiveError, type Archive } from '../storage/archive.js';
import type { ModelSettings } from '../core/definition/definition.js';
import { isObject } from '../core/json.js';
import type { Outcome } from '../core/outcome.js';
import type { AttemptReport } from '../core/report.js';
import type { HistoryEvent } from './history-event.js';
import { reportsOf } from './pending-work.js';
import type { EndedTurnOf } from './projection.js';
import type { RunReading } from './read-run.js';
import { previousRunId, readSegment } from './segments.js';

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

/** Returns the reports on failed attempts, by the turn of the model call. */
function reportsByTurn(
  events: readonly HistoryEvent[],
): readonly (readonly [turn: number, report: AttemptReport])[] {
  const turns = new Map<number, number>();
  return events.flatMap((event) => {
    if (event.type === 'scheduled') {
      const turn = isObject(event.input) ? event.input['turn'] : undefined;
      if (typeof turn === 'number') turns.set(event.id, turn);
    }
    if (event.type !== 'completed' && event.type !== 'failed') return [];
    const turn = turns.get(event.scheduled);
    if (turn === undefined) return [];
    const recorded = event.type === 'completed' ? [event.result] : event.failure.details;
    return recorded.flatMap(reportsOf).map((report) => [turn, report] as const);
  });
}

function asMissing(error: unknown): null {
  if (error instanceof ArchiveError) return null;
  throw error;
}
