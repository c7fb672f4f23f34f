import type { Client } from '@temporalio/client';
import type { RunState } from '../../core/state/state.js';
import type { DecisionKind } from '../../core/transcript/request.js';
import { readRun } from '../../history/read-run.js';
import { hasLiveWorker } from '../../temporal/pollers.js';
import type { CliContext } from '../context.js';
import { workerHint } from '../open-run.js';

/** The decisions that wait for a worker to check them, by the ids of their requests. */
type CheckedDecisions = ReadonlyMap<string, DecisionKind>;

/** Returns the decisions of a run that a worker has not checked yet. */
export function checkedDecisions(state: RunState | null): CheckedDecisions {
  const checked = (state?.work ?? []).flatMap(({ request, proposal }) =>
    request === undefined || proposal === undefined
      ? []
      : [[request.id, proposal.decision.as] as const],
  );
  return new Map(checked);
}

/** Reads the decisions of a run that a worker has not checked yet; none if the run cannot be read. */
export async function readChecked(client: Client, run: string): Promise<CheckedDecisions> {
  const read = await readRun(client, run).catch(() => null);
  return checkedDecisions(read?.view.state ?? null);
}

/** Returns the line about a request of which a decision is being checked. */
export function checkedLine(as: DecisionKind | undefined): string {
  const what = as === undefined ? 'A decision' : `A decision (${as})`;
  return `${what} waits for a worker to check it; no other can be made until then.`;
}

/** Returns how to start a worker that checks a decision, in a line; null if one is running. */
export async function checkingHint(
  context: CliContext,
  place: Parameters<typeof workerHint>[1],
): Promise<string | null> {
  if (await hasLiveWorker(await context.client(), place.taskQueue)) return null;
  return `No worker is running. ${await workerHint(context, place)}`;
}
