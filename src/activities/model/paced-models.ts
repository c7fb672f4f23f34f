import { AsyncLocalStorage } from 'node:async_hooks';
import { Context } from '@temporalio/activity';
import type { Rate } from '../../core/rules/rate.js';
import {
  type ModelCatalog,
  type ModelEntry,
  type ResolvedModel,
  rateOf,
} from '../../models/model-entry.js';
import { type Model, type ModelRequest, estimateUsage } from '../../models/model.js';
import { takeFromRate } from '../../updates/shared-limits.js';
import { RateHolder, type TakeBlock } from './rate-holder.js';

/** The tokens of a reply before any has been seen. */
const FIRST_REPLY_TOKENS = 500;
const NEWEST_SHARE = 0.1;

/**
 * Returns a catalog whose models with a `rate` share it with all workers of the namespace: each call waits
 * for its time in the allowance. Other models are those of the catalog.
 */
export function pacedModels(
  catalog: ModelCatalog,
  entries: Readonly<Record<string, ModelEntry>>,
): ModelCatalog {
  const paced = new Map<string, ResolvedModel>();
  for (const [name, entry] of Object.entries(entries)) {
    const rate = rateOf(entry);
    if (rate === null) continue;
    const resolved = catalog.resolve(name);
    paced.set(name, { ...resolved, model: pace(resolved.model, { name, rate }) });
  }
  if (paced.size === 0) return catalog;
  return { ...catalog, resolve: (name) => paced.get(name) ?? catalog.resolve(name) };
}

function pace(model: Model, { name, rate }: { readonly name: string; readonly rate: Rate }): Model {
  const holder = new RateHolder(name, rate);
  let replyTokens = FIRST_REPLY_TOKENS;
  // A request for a block is for all calls, so the end of one call's activity must not end it.
  const outside = AsyncLocalStorage.snapshot();
  return {
    async call(request, context) {
      const { client, info } = Context.current();
      const { taskQueue, scheduledTimestampMs: since } = info;
      const take: TakeBlock = async (ask) =>
        await outside(() => takeFromRate(client, { model: name, taskQueue }, ask));
      const counted = rate.tokens !== undefined;
      const tokens = counted ? promptTokens(request) + Math.round(replyTokens) : 0;
      await holder.enter({ tokens, since, signal: context.signal }, take);
      const reply = await model.call(request, context);
      if (!counted) return reply;
      const { inputTokens, outputTokens } = reply.usage ?? estimateUsage(request, reply);
      replyTokens += (outputTokens - replyTokens) * NEWEST_SHARE;
      holder.settle({ taken: inputTokens + outputTokens, estimated: tokens });
      return reply;
    },
  };
}

function promptTokens(request: ModelRequest): number {
  return estimateUsage(request, { text: '', calls: [], finish: 'stop' }).inputTokens;
}
