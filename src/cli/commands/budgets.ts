import type { Client } from '@temporalio/client';
import { type Config, budgetsOf } from '../../config.js';
import { visible } from '../../core/state/summaries.js';
import { type CliContext, type Command, EXIT } from '../context.js';
import { columns } from '../format/format.js';
import { noteServer } from '../hosting/server-notes.js';
import { nextCommand } from '../reports/next-command.js';
import { type SharedBudget, DAY_MS, dayOf, isSome } from '../../core/rules/budget.js';
import { idHashingOf } from '../../temporal/stored-ids.js';
import { readBudget } from '../../updates/shared-limits.js';

/** `budgets`: shows what runs have spent today of each budget of the configuration. Needs a worker. */
export const budgets: Command<object> = {
  declare: (entry) => entry,
  async run(context) {
    const config = await context.config();
    const hasSome = budgetsOf(config).length > 0;
    if (hasSome) noteServer(context, await context.server());
    const rows = hasSome ? await readBudgetRows(context, config) : [];
    if (context.options.json) context.out(JSON.stringify({ budgets: rows }));
    else if (rows.length === 0) context.note('The configuration has no `budgets`.');
    else {
      const cells = rows.map((row) => [
        `${row.of} ${visible(row.name)}`,
        row.day,
        formatAmount(row.spent, row),
        formatAmount(row.held, row),
        formatAmount(row.limit, row),
        row.isUsedUp ? 'used up' : '',
      ]);
      const lines = columns([['OF', 'DAY', 'SPENT', 'HELD', 'BUDGET', ''], ...cells]);
      for (const line of lines) context.out(line);
    }
    for (const { of, name, unread } of rows) {
      if (unread !== undefined) context.note(`Budget of ${of} ${visible(name)}: ${unread}`);
    }
    return rows.some(({ unread }) => unread !== undefined) ? EXIT.failed : EXIT.completed;
  },
};

/** A budget of the configuration, and what runs have spent of it today. */
interface BudgetRow extends SharedBudget {
  /** The day in UTC: `2026-11-26`. */
  readonly day: string;
  /** Null if it could not be read. */
  readonly spent: number | null;
  /** What workers may still spend, or what a dead worker had. Null if it could not be read. */
  readonly held: number | null;
  readonly isUsedUp: boolean;
  /** Why it could not be read. */
  readonly unread?: string;
}

/** Reads what was spent of each budget today. A worker answers for the workflow that counts it. */
export async function readBudgetRows(
  context: CliContext,
  config: Pick<Config, 'budgets'>,
): Promise<readonly BudgetRow[]> {
  const client = await context.client();
  const start = nextCommand(context, 'worker');
  const shared = budgetsOf(config, idHashingOf(client));
  return await Promise.all(shared.map(async (budget) => await readRow(client, { budget, start })));
}

/** `start`: the command that starts a worker. */
async function readRow(
  client: Client,
  { budget, start }: { readonly budget: SharedBudget; readonly start: string },
): Promise<BudgetRow> {
  const today = dayOf(Date.now());
  try {
    // Nothing was spent of a budget that nothing counts.
    const { day = today, spent = 0, held = 0 } = (await readBudget(client, budget)) ?? {};
    const isUsedUp = !isSome(budget.limit - spent - held, budget);
    return { ...budget, day: dateOf(day), spent, held, isUsedUp };
  } catch (error) {
    const unread = error instanceof Error ? error.message : String(error);
    const row = { ...budget, day: dateOf(today), spent: null, held: null, isUsedUp: false };
    // That the query of the workflow failed says no more than that.
    const why = unread === QUERY_FAILED ? '' : ` (${unread})`;
    return { ...row, unread: `no worker answers for it${why}; start one with: ${start}` };
  }
}

/** The message of Temporal's SDK for a query without an answer; its cause has the reason. */
const QUERY_FAILED = 'Failed to query Workflow';

function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

const DIGITS = { costUsd: 4, tokens: 0 } as const;

/** Formats an amount of a budget: `$1.2500`, `1200 tokens`, or `-` if it is unknown. */
export function formatAmount(amount: number | null, { unit }: Pick<SharedBudget, 'unit'>): string {
  if (amount === null) return '-';
  const digits = amount.toFixed(DIGITS[unit]);
  return unit === 'costUsd' ? `$${digits}` : `${digits} tokens`;
}
