import { AsyncLocalStorage } from 'node:async_hooks';
import { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import { LRUCache } from 'lru-cache';
import type { ModelPrice } from '../../core/definition/definition.js';
import type { SharedBudget } from '../../core/rules/budget.js';
import { costOf } from '../../core/rules/spending.js';
import type { ReplyUsage } from '../../core/transcript/outcome.js';
import type { ModelCatalog, ResolvedModel } from '../../models/model-catalog.js';
import { type Model, ModelError, type ModelRequest, estimateUsage } from '../../models/model.js';
import { settleLease, takeLease } from '../../updates/shared-limits.js';
import { toRunIds } from '../attempt.js';
import { checkedReply } from './checked-reply.js';
import { BudgetHolder, type BudgetOffice, type Settle } from './budget-holder.js';
import { readUsage } from './record-reply.js';

/** The tokens that are reserved for a reply, at least, unless the request allows fewer. */
const MIN_REPLY_TOKENS = 4_000;
/** What is reserved for a reply is so many times the longest one so far. */
const REPLY_FACTOR = 2;
const MAX_RUNS = 1_000;

/** A catalog whose model calls count against budgets. */
interface BudgetedModels {
  readonly catalog: ModelCatalog;
  /** Returns all leases. Never rejects. */
  readonly close: () => Promise<void>;
}

/**
 * Returns a catalog in which each call waits until the budgets of its run have room for it, and counts
 * against them. Without budgets, it is the catalog itself.
 */
export function budgetedModels(
  catalog: ModelCatalog,
  budgets: readonly SharedBudget[],
): BudgetedModels {
  if (budgets.length === 0) return { catalog, close: async () => undefined };
  const holders = budgets.map((budget) => ({ budget, holder: new BudgetHolder(budget) }));
  const tagsOf = createTagLookup(budgets);
  const applying = async (context: Context): Promise<typeof holders> => {
    const tenant = context.info.priority?.fairnessKey ?? '';
    const tags = await tagsOf(context);
    return holders.filter(({ budget: { of, name, stored } }) =>
      of === 'tenant' ? tenant === name || tenant === stored : tags.includes(name),
    );
  };
  const wrapped = new Map<string, Model>();
  const resolve = (name: string): ResolvedModel => {
    const own = catalog.resolve(name);
    const model = wrapped.get(name) ?? spending(own, applying);
    wrapped.set(name, model);
    return { ...own, model };
  };
  return {
    catalog: { ...catalog, resolve },
    close: async () => {
      await Promise.all(holders.map(({ holder }) => holder.close()));
    },
  };
}

type Applying = (
  context: Context,
) => Promise<readonly { readonly budget: SharedBudget; readonly holder: BudgetHolder }[]>;

/** Returns a model whose calls reserve what they may cost, and settle what they did cost. */
function spending({ model, name, price }: ResolvedModel, applying: Applying): Model {
  let longestReply = 0;
  // A request for a lease is for all calls, so the end of one call's activity must not end it.
  const outside = AsyncLocalStorage.snapshot();
  return {
    async call(request, callContext) {
      const context = Context.current();
      const { taskQueue, scheduledTimestampMs: since } = context.info;
      const reserved = usageOf(request, Math.max(MIN_REPLY_TOKENS, REPLY_FACTOR * longestReply));
      const open: { readonly budget: SharedBudget; readonly settle: Settle }[] = [];
      let used: ReplyUsage | null = null;
      try {
        for (const { budget, holder } of await applying(context)) {
          const need = amountOf(budget, reserved, { name, price });
          if (need === 0) continue;
          const office = officeOf(context.client, { budget, taskQueue, outside });
          const { signal } = callContext;
          open.push({ budget, settle: await holder.enter({ need, since, signal }, office) });
        }
        const reply = checkedReply(await model.call(request, callContext), request);
        used = readUsage(reply, request);
        longestReply = Math.max(longestReply, used.outputTokens);
        return reply;
      } finally {
        // A call without a reply costs nothing, as for the limits of the run.
        for (const { budget, settle } of open) {
          settle(used === null ? 0 : amountOf(budget, used, { name, price }));
        }
      }
    },
  };
}

/** Returns what a call may use: its prompt, without a cache, and a reply of so many tokens. */
function usageOf(request: ModelRequest, replyTokens: number): ReplyUsage {
  const { inputTokens } = estimateUsage(request, { text: '', calls: [], finish: 'stop' });
  const { maxOutputTokens = Infinity } = request.settings;
  return { inputTokens, outputTokens: Math.min(maxOutputTokens, replyTokens), cachedTokens: 0 };
}

/** Returns an amount in the unit of the budget. Throws a `ModelError` if the model has no price. */
function amountOf(
  { unit }: SharedBudget,
  used: ReplyUsage,
  { name, price }: { readonly name: string; readonly price: ModelPrice | null },
): number {
  if (unit === 'tokens') return used.inputTokens + used.outputTokens;
  const cost = price && costOf(used, price);
  if (cost !== null) return cost;
  throw new ModelError(unpricedText(name), { kind: 'model', type: 'no_price' });
}

/** Says that the price of a model is unknown, and what helps. */
export function unpricedText(model: string): string {
  return (
    `the price of model ${JSON.stringify(model)} is unknown, so its calls cannot count against \`budgets\` with costUsd; ` +
    'give `price` with the model in the config, or use `tokens` in the budget'
  );
}

function officeOf(
  client: Client,
  {
    budget,
    taskQueue,
    outside,
  }: {
    readonly budget: SharedBudget;
    readonly taskQueue: string;
    readonly outside: ReturnType<typeof AsyncLocalStorage.snapshot>;
  },
): BudgetOffice {
  return {
    take: async (ask) => await outside(() => takeLease(client, { budget, taskQueue }, ask)),
    settle: async (said) => await outside(() => settleLease(client, budget, said)),
  };
}

/**
 * Returns a function that finds the tags of an activity's run, and of the runs above it. It asks the server
 * once for each run, and only if a budget is for a tag.
 */
function createTagLookup(
  budgets: readonly SharedBudget[],
): (context: Context) => Promise<readonly string[]> {
  if (budgets.every(({ of }) => of !== 'tag')) return async () => [];
  const known = new LRUCache<string, Promise<readonly string[]>>({ max: MAX_RUNS });
  return async ({ client, info }) => {
    const { id, runId } = toRunIds(info);
    const tags = known.get(runId) ?? readTags(client, id);
    known.set(runId, tags);
    try {
      return await tags;
    } catch (error) {
      known.delete(runId);
      throw error;
    }
  };
}

/** Reads the tags of a run, and of all workflows above it that the server has. */
async function readTags(client: Client, id: string): Promise<readonly string[]> {
  const tags: string[] = [];
  const seen = new Set<string>();
  const waiting = [id];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    if (seen.has(next)) continue;
    seen.add(next);
    const found = await client.workflow
      .getHandle(next)
      .describe()
      .catch((error: unknown) => {
        if (next !== id && error instanceof WorkflowNotFoundError) return null;
        throw error;
      });
    if (found === null) continue;
    const { memo, parentExecution, rootExecution } = found;
    tags.push(...tagsIn(memo));
    // A caller may have been deleted before the first one.
    for (const above of [parentExecution, rootExecution])
      if (above?.workflowId) waiting.push(above.workflowId);
  }
  return tags;
}

function tagsIn(memo: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const tags = memo?.['tags'];
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [];
}
