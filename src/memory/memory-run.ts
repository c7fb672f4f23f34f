import type { WorkflowHandle } from '@temporalio/client';
import type { PerdureClient } from '../client/client-types.js';
import { toRunStatus } from '../client/status.js';
import type { RunStatus } from '../core/state/status.js';
import type { Json } from '../core/text/json.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { readRun } from '../history/read-run.js';
import { type RunTranscript, readTranscript } from '../history/run-transcript.js';
import type { ModelRequest } from '../models/model.js';
import type { Archive } from '../storage/blob-store.js';
import { type MemoryHost, allSegments } from './host.js';
import type { MemoryEffect, Observed } from './observe.js';
import type { MemoryRequest, Script } from './script.js';
import { unusedIn } from './script-checks.js';

/** The history of one segment of a run. */
export interface MemoryHistory {
  readonly id: string;
  readonly runId: string;
  /** In the form in which Temporal's client returns a history. */
  readonly history: Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
}

/** A run that has ended, or that waits for a message which the script does not send. */
export interface MemoryRun<Output = Json> {
  readonly id: string;
  /** The outcome of the run; of an open run, that of its latest turn. */
  readonly outcome: Outcome<Output>;
  readonly status: RunStatus;
  readonly transcript: RunTranscript;
  /** What each model call asked, of all agents, in order. */
  readonly modelRequests: readonly ModelRequest[];
  /** The executed tool calls of all agents, in order, including those whose results were lost. */
  readonly effects: readonly MemoryEffect[];
  /** The requests to people, of all agents, in order. */
  readonly requests: readonly MemoryRequest[];
  /** The virtual time from the start to the end, in ms. */
  readonly clock: number;
  /** The Temporal histories of the run and of the runs that it called, segment by segment. */
  readonly history: readonly MemoryHistory[];
  /**
   * What the run left over of its script, in words: replies of a list, and what `on.request` and
   * `on.waiting` say. Empty if it used everything.
   */
  readonly unused: readonly string[];
}

/** A run that may wait for something that is not scripted. */
export type PartialRun = Omit<MemoryRun, 'outcome'> & { readonly outcome: Outcome | null };

/** Reads what a run in memory has left; its archive is read where a history has ended. */
export async function resultOf(
  host: MemoryHost,
  {
    client,
    id,
    script,
    observed,
    startAt,
    archive,
    isOver,
  }: {
    readonly client: PerdureClient;
    readonly archive: Archive;
    readonly id: string;
    readonly script: Script;
    readonly observed: Observed;
    readonly startAt: number;
    readonly isOver: boolean;
  },
): Promise<PartialRun> {
  // One reading of the history serves for all.
  const reading = await readRun(host.client, id);
  const status = toRunStatus(reading, host.server.clock.now());
  const outcome = status.outcome ?? (isOver ? await client.result(id) : null);
  return {
    id,
    outcome,
    status,
    transcript: await readTranscript(host.client, reading, { side: true, archive }),
    modelRequests: observed.modelRequests,
    effects: observed.effects,
    requests: [...script.requests.values()].map(({ run, request, decided }) => ({
      ...request,
      run,
      decided,
    })),
    clock: host.server.clock.now() - startAt,
    history: allSegments(host.server).map(({ workflowId, runId, events }) => ({
      id: workflowId,
      runId,
      history: { events: [...events] },
    })),
    unused: unusedIn(script),
  };
}
