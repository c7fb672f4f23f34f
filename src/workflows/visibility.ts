import { setCurrentDetails, upsertMemo, upsertSearchAttributes } from '@temporalio/workflow';
import { isLoaded } from '../core/definition/initial-config.js';
import type { Outcome } from '../core/outcome.js';
import { currentDetails } from '../core/text/details.js';
import { turnMemo } from '../core/transcript/pages.js';
import { createStatus } from './messages/queries.js';
import type { RunContext } from './run-context.js';

/** Shows the run in Temporal's Current Details, which are computed whenever they are read. */
export function showDetails(run: RunContext): void {
  setCurrentDetails(lazyText(() => currentDetails(run.state, createStatus(run))));
}

/** Writes the search attributes if the status or the reason has changed. */
export function publishStatus(run: RunContext): void {
  // The loaded configuration lists the namespace's attributes.
  if (!isLoaded(run.state)) return;
  const status = createStatus(run);
  const key = `${status.status} ${status.reason ?? ''}`;
  if (key === run.shown) return;
  run.shown = key;
  writeAttributes(run.state.config.searchAttributes, {
    AgentName: status.agent,
    AgentStatus: status.status,
    AgentReason: status.reason ?? '',
  });
}

/**
 * Returns a text that is built only when it is read, when the SDK serializes it as JSON. Building
 * it at every step would cost more than all of the run's decisions together.
 */
function lazyText(make: () => string): string {
  const text: { toJSON(): string } = { toJSON: make };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its JSON is a string
  return text as unknown as string;
}

/**
 * Writes the known attributes. One that the namespace lacks would fail the workflow task
 * repeatedly.
 */
function writeAttributes(known: readonly string[], values: Record<string, string>): void {
  const entries = Object.entries(values).filter(([name]) => known.includes(name));
  if (entries.length === 0) return;
  upsertSearchAttributes(
    Object.fromEntries(entries.map(([name, value]) => [name, value === '' ? [] : [value]])),
  );
}

/** Writes the end of a turn to the memo, where it can be read without a worker. */
export function recordTurnMemo(turn: number, outcome: Outcome): void {
  upsertMemo({ ...turnMemo(turn, outcome) });
}
