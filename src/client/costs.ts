import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { addUsage } from '../core/rules/spending.js';
import { nothingSpent } from '../core/state/turn.js';
import type { Usage } from '../core/transcript/outcome.js';
import { readRun, type RunReading } from '../history/read-run.js';
import type { Archive } from '../storage/blob-store.js';
import { type OptionSchemas, checkOptions } from '../validation/check-options.js';
import { mapAsReady } from './batch.js';
import type { PerdureClient } from './client-types.js';
import { type ClientParts, partsOfClient } from './create-client.js';
import { type ListFilter, assertListFilter } from './list-filter.js';
import { listRuns } from './list.js';
import type { RunRow } from './run-row.js';
import { toRunStatus } from './status.js';
import { project } from '../history/projection.js';
import { previousRunId, readSegment } from '../history/segments.js';

/** What costs are added up for. */
const COST_GROUPS = ['agent', 'tenant', 'tag'] as const;

/** Which runs count, and what their costs are added up for. */
export interface CostOptions extends Pick<ListFilter, 'agent' | 'tag' | 'since' | 'before'> {
  /** Default: `agent`. With `tag`, a run with several tags counts for each of them. */
  readonly by?: (typeof COST_GROUPS)[number];
}

/** What the runs of one agent, of one tenant, or with one tag have cost. */
export interface CostRow {
  /** The name of the agent, the tenant, or the tag; null: the runs that have none. */
  readonly name: string | null;
  readonly runs: number;
  /** The sum for these runs; `costUsd` is that of the runs whose cost is known. */
  readonly usage: Usage;
  /** The runs of which the cost is unknown: they have used tokens of a model that has no price. */
  readonly unpriced: number;
}

/** What runs have cost, with the most expensive first, and which of them could not be read. */
export interface Costs {
  readonly rows: readonly CostRow[];
  readonly unreadable: readonly { readonly run: string; readonly why: string }[];
}

const costOptions = z.strictObject({
  by: z.enum(COST_GROUPS).optional(),
  agent: z.unknown().optional(),
  tag: z.unknown().optional(),
  since: z.unknown().optional(),
  before: z.unknown().optional(),
} satisfies OptionSchemas<CostOptions>);

/** How many runs are read at the same time. */
const AT_ONCE = 8;
const PAGE = 1_000;

/**
 * Adds up what runs have cost: those that the server has, open or ended, by the time of their start. The cost
 * of a run includes that of the agents that it has called. Reads the history of each run. Rejects with an
 * `InputError` for an invalid option.
 *
 * @example
 * ```ts
 * import { createClient, readCosts } from 'perdure/client';
 *
 * const client = await createClient();
 * const { rows } = await readCosts(client, { by: 'tenant', since: '30d' });
 * for (const { name, runs, usage } of rows) console.log(name, runs, usage.costUsd);
 * ```
 */
export async function readCosts(client: PerdureClient, options: CostOptions = {}): Promise<Costs> {
  return await costsFrom(partsOfClient(client), options);
}

/** Like `readCosts`, for a program that has the client and the archive itself. */
export async function costsFrom(
  { client, archive }: Pick<ClientParts, 'client'> & { readonly archive: Archive },
  options: CostOptions,
): Promise<Costs> {
  checkOptions('readCosts', { schema: costOptions, options }, (text) => new InputError(text));
  const { by = 'agent', ...filter } = options;
  assertListFilter(filter);
  const rows = new Map<string | null, CostRow>();
  const add = (row: RunRow, usage: Usage): void => {
    for (const name of namesOf(row, by)) rows.set(name, plus(rows.get(name), name, usage));
  };
  const { runs, unreadable } = await usedRuns({ client, archive }, filter);
  const reset: (readonly Execution[])[] = [];
  for (const executions of runs) {
    const [first] = executions;
    if (executions.length > 1) reset.push(executions);
    else if (first !== undefined) add(first.row, first.usage);
  }
  const merge = async (index: number) => {
    const executions = reset[index] ?? [];
    const used = executions.map(({ row, usage }) => ({ id: row.id, runId: row.runId, usage }));
    return { row: executions[0]?.row, usage: await usageWithResets({ client, archive }, used) };
  };
  for await (const { row, usage } of mapAsReady(reset.length, merge, { atOnce: AT_ONCE }))
    if (row !== undefined) add(row, usage);
  const cost = ({ usage }: CostRow): number => usage.costUsd ?? 0;
  const tokens = ({ usage }: CostRow): number => usage.inputTokens + usage.outputTokens;
  const sorted = [...rows.values()].toSorted((a, b) => cost(b) - cost(a) || tokens(b) - tokens(a));
  return { rows: sorted, unreadable };
}

/** An execution of a run; a run that was reset has several. */
interface Execution {
  readonly row: RunRow;
  readonly usage: Usage;
}

/** Reads what the runs of a filter have used. The executions of one run are together. */
async function usedRuns(
  { client, archive }: Pick<ClientParts, 'client'> & { readonly archive: Archive },
  filter: Omit<CostOptions, 'by'>,
): Promise<{
  readonly runs: readonly (readonly Execution[])[];
  readonly unreadable: Costs['unreadable'];
}> {
  const runs = new Map<string, Execution[]>();
  const unreadable: { readonly run: string; readonly why: string }[] = [];
  // A run that ends while its list is read is listed again, among those that have ended.
  const seen = new Set<string>();
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof listRuns>> = await listRuns(client, {
      ...filter,
      limit: PAGE,
      ...(cursor !== null && { cursor }),
    });
    const fresh = page.rows.filter(({ runId }) => !seen.has(runId));
    for (const { runId } of fresh) seen.add(runId);
    const read = async (index: number) => {
      const row = fresh[index];
      if (row === undefined) return null;
      // Whose run it is, or its tags, are unknown.
      if (row.unreadable !== undefined) return { row, why: row.unreadable };
      try {
        // An id may be that of later runs, too.
        const segment = row.closedAt === null ? undefined : row.runId;
        const run = await readRun(client, row.id, { archive, segment });
        const [started] = run.events;
        const first = started?.type === 'started' ? started.firstRunId : run.runId;
        return { row, first, usage: toRunStatus(run, Date.now()).usage };
      } catch (error) {
        return { row, why: error instanceof Error ? error.message : String(error) };
      }
    };
    for await (const one of mapAsReady(fresh.length, read, { atOnce: AT_ONCE })) {
      if (one === null) continue;
      if ('why' in one) unreadable.push({ run: one.row.id, why: one.why });
      else {
        const { row, first, usage } = one;
        runs.set(first, [...(runs.get(first) ?? []), { row, usage }]);
      }
    }
    ({ cursor } = page);
  } while (cursor !== null);
  return { runs: [...runs.values()], unreadable };
}

function namesOf(
  { agent, tenant, givenTenant, tags }: RunRow,
  by: NonNullable<CostOptions['by']>,
): readonly (string | null)[] {
  if (by === 'agent') return [agent];
  if (by === 'tenant') return [givenTenant ?? tenant ?? null];
  return tags.length === 0 ? [null] : [...new Set(tags)];
}

/** Returns a row with one more run. */
function plus(row: CostRow | undefined, name: string | null, spent: Usage): CostRow {
  const before = row ?? { name, runs: 0, unpriced: 0, usage: NOTHING };
  const { costUsd, ...used } = spent;
  return {
    name,
    runs: before.runs + 1,
    // A run without tokens has cost nothing, whether its model has a price or it has no model.
    unpriced: before.unpriced + (costUsd === null && hasTokens(used) ? 1 : 0),
    usage: addUsage(before.usage, { used, cost: costUsd ?? 0 }),
  };
}

function hasTokens({ inputTokens, outputTokens }: Pick<Usage, 'inputTokens' | 'outputTokens'>) {
  return inputTokens + outputTokens > 0;
}

const NOTHING: Usage = { ...nothingSpent(null).usage, costUsd: 0 };

/** A run as a list has it, and what it has used. */
interface UsedRun {
  readonly id: string;
  /** The run id of its newest segment. */
  readonly runId: string;
  readonly usage: Usage;
}

/**
 * Returns what a run has used that was reset with Temporal's own tools: the history of each of its
 * executions repeats the events before its reset, which count once.
 */
async function usageWithResets(
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
