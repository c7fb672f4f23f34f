import { addUsage } from '../core/rules/spending.js';
import { nothingSpent } from '../core/state/turn.js';
import type { Usage } from '../core/transcript/outcome.js';
import { project } from '../history/projection.js';
import { type RunReading, readRun } from '../history/read-run.js';
import { previousRunId, readSegment } from '../history/segments.js';
import type { ClientParts } from './create-client.js';

/** A run as a list has it, and what it has used. */
export interface UsedRun {
  readonly id: string;
  /** The run id of its newest segment. */
  readonly runId: string;
  readonly usage: Usage;
}

/**
 * Returns what a run has used that was reset with Temporal's own tools: the history of each of its
 * executions repeats the events before its reset, which count once.
 */
export async function usageWithResets(
  parts: Pick<ClientParts, 'client' | 'archive'>,
  executions: readonly UsedRun[],
): Promise<Usage> {
  const read = executions.map(async ({ id, runId, usage }) => {
    const run = await readRun(parts.client, id, { archive: parts.archive, segment: runId });
    return { usage, reset: await lastReset(parts, run) };
  });
  const byReset = (await Promise.all(read)).toSorted(
    (a, b) => (a.reset?.at ?? 0) - (b.reset?.at ?? 0),
  );
  return byReset.reduce<Usage>(
    (sum, { usage, reset }, index) => {
      // What the oldest one repeats is in no other.
      const { costUsd: cost, ...used } = index === 0 ? usage : minus(usage, reset?.usage ?? null);
      return addUsage(sum, { used, cost });
    },
    { ...nothingSpent(null).usage, costUsd: 0 },
  );
}

/** Returns when a run was reset last, which may be in an earlier segment, and what it had used before; null if never. */
async function lastReset(
  { client, archive }: Pick<ClientParts, 'client' | 'archive'>,
  { id, ...newest }: Pick<RunReading, 'id' | 'history' | 'events'>,
): Promise<{ readonly at: number; readonly usage: Usage | null } | null> {
  let segment: Pick<RunReading, 'history' | 'events'> | null = newest;
  while (segment !== null) {
    const { history, events } = segment;
    const index = (history.events ?? []).findLastIndex(
      (event) => event.workflowTaskFailedEventAttributes?.baseRunId,
    );
    if (index !== -1) {
      const usage = project(events.slice(0, index)).state?.total.usage ?? null;
      return { at: events[index]?.at ?? 0, usage };
    }
    const runId = previousRunId(events);
    segment = runId === '' ? null : await readSegment(client, { id, runId, archive });
  }
  return null;
}

function minus(usage: Usage, part: Usage | null): Usage {
  if (part === null) return usage;
  const written = (usage.cacheWriteTokens ?? 0) - (part.cacheWriteTokens ?? 0);
  const reasoned = (usage.reasoningTokens ?? 0) - (part.reasoningTokens ?? 0);
  const isKnown = usage.costUsd !== null && part.costUsd !== null;
  return {
    inputTokens: usage.inputTokens - part.inputTokens,
    outputTokens: usage.outputTokens - part.outputTokens,
    cachedTokens: usage.cachedTokens - part.cachedTokens,
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(reasoned > 0 && { reasoningTokens: reasoned }),
    costUsd: isKnown ? (usage.costUsd ?? 0) - (part.costUsd ?? 0) : usage.costUsd,
    ...(usage.estimated && { estimated: true as const }),
  };
}
