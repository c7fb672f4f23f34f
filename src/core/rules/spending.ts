import { type ModelPrice } from '../definition/definition.js';
import type { RunState } from '../state/state.js';
import { type Spent } from '../state/turn.js';
import {
  type AttemptReport,
  type RecordedReply,
  type ReplyUsage,
  STORAGE_LOST,
  type Usage,
} from '../transcript/outcome.js';

/** Maximum losses that an outcome lists; the first ones, because the others have the same cause. */
const MAX_LOSSES = 20;
/** Maximum reports of failed attempts that a turn keeps. */
const MAX_REPORTS = 10;

/** Adds a model call to the usage of the turn and the run. Only a deciding call is a step. */
export function addReply(
  state: RunState,
  call: { reply: RecordedReply; deciding: boolean },
): RunState {
  const { costUsd: cost } = replyUsage(call.reply, state.config.price);
  const add = (spent: Spent): Spent => ({
    ...spent,
    steps: spent.steps + (call.deciding ? 1 : 0),
    usage: addUsage(spent.usage, { used: call.reply.usage, cost }),
  });
  const { dropped = [] } = call.reply;
  const before = state.dropped ?? [];
  const next = spend(
    {
      ...addReports(state, call.reply.reports ?? []),
      ...(dropped.length > 0 && { dropped: [...new Set([...before, ...dropped])] }),
    },
    add,
  );
  const { usage, decided } = call.reply;
  if (usage.estimated) return next;
  return { ...next, compaction: counted(next, decided?.promptTokens ?? usage.inputTokens) };
}

/** Adds reports to those of the turn. A loss also becomes a part of the turn's outcome. */
export function addReports(state: RunState, added: readonly AttemptReport[]): RunState {
  const reports = [...state.turn.reports, ...added].slice(-MAX_REPORTS);
  const { lost: before = [] } = state.turn;
  const losses = added.filter(({ type }) => type === STORAGE_LOST).map(({ message }) => message);
  const lost = [...before, ...losses].slice(0, MAX_LOSSES);
  return { ...state, turn: { ...state.turn, reports, ...(lost.length > 0 && { lost }) } };
}

/**
 * Returns the compaction state with the provider's count of the prompt. The reply's tokens are
 * added with its message.
 */
function counted({ compaction }: RunState, promptTokens: number): RunState['compaction'] {
  return { ...compaction, promptTokens };
}

/** Adds the tokens of model calls without a reply to the usage of the turn and the run. */
export function addTokensUsed(state: RunState, used: ReplyUsage): RunState {
  return addSpent(state, { usage: toUsage(used, state.config.price) });
}

/** Adds executed tool calls to the usage of the turn and the run. */
export function countCalls(state: RunState, executed: number): RunState {
  return spend(state, (spent) => ({ ...spent, toolCalls: spent.toolCalls + executed }));
}

/** Adds the usage of a called agent, which counts against its caller's budget. */
export function addSpent(state: RunState, { usage }: { readonly usage?: Usage }): RunState {
  if (usage === undefined) return state;
  const { costUsd: cost, ...used } = usage;
  const call = { used, cost };
  return spend(state, (spent) => ({ ...spent, usage: addUsage(spent.usage, call) }));
}

function spend(state: RunState, add: (spent: Spent) => Spent): RunState {
  return {
    ...state,
    total: add(state.total),
    turn: { ...state.turn, spent: add(state.turn.spent) },
  };
}

/** Returns the usage of one model call with its cost, which is null if the price is unknown. */
export function toUsage(used: ReplyUsage, price: ModelPrice | null): Usage {
  return { ...used, costUsd: costOf(used, price) };
}

/** Returns the usage of a reply at the price of the model that wrote it. `price`: of the run's model. */
export function replyUsage(
  { usage, fallback }: Pick<RecordedReply, 'usage' | 'fallback'>,
  price: ModelPrice | null,
): Usage {
  return toUsage(usage, fallback === undefined ? price : fallback.price);
}

/** Returns the sum of a usage and of the tokens and the cost of more model calls. */
export function addUsage(
  { costUsd: spent, ...sum }: Usage,
  { used, cost }: { used: ReplyUsage; cost: number | null },
): Usage {
  // Without a price, the cost of nothing is null too, but reported costs can be added to it.
  const before = spent ?? (sum.inputTokens + sum.outputTokens === 0 ? 0 : null);
  const costUsd = before === null || cost === null ? null : before + cost;
  return { ...addTokens(sum, used), costUsd };
}

/** Returns the tokens of several model calls together. */
export function addTokens(sum: ReplyUsage, used: ReplyUsage): ReplyUsage {
  const cacheWriteTokens = (sum.cacheWriteTokens ?? 0) + (used.cacheWriteTokens ?? 0);
  const reasoningTokens = (sum.reasoningTokens ?? 0) + (used.reasoningTokens ?? 0);
  return {
    inputTokens: sum.inputTokens + used.inputTokens,
    outputTokens: sum.outputTokens + used.outputTokens,
    cachedTokens: sum.cachedTokens + used.cachedTokens,
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    ...(reasoningTokens > 0 && { reasoningTokens }),
    ...((sum.estimated || used.estimated) && { estimated: true as const }),
  };
}

/** Returns the cost of a call in US dollars; null if the price is unknown. */
export function costOf(usage: ReplyUsage, price: ModelPrice | null): number | null {
  if (price === null) return usage.costUsd ?? null;
  const { cacheWriteTokens: written = 0 } = usage;
  const fresh = usage.inputTokens - usage.cachedTokens - written;
  return (
    (fresh * price.input +
      written * (price.cacheWrite ?? price.input) +
      usage.cachedTokens * price.cachedInput +
      usage.outputTokens * price.output) /
    1e6
  );
}
