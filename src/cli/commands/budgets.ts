import { budgetsOf } from '../../config.js';
import { visible } from '../../core/state/summaries.js';
import { type Command, EXIT } from '../context.js';
import { columns } from '../format/format.js';
import { noteServer } from '../hosting/server-notes.js';
import { formatAmount, readBudgetRows } from '../reports/budget-rows.js';

/** `budgets`: shows what runs have spent today of each budget of the configuration. Needs a worker. */
export const budgets: Command<object> = {
  declare: (entry) => entry,
  async run(context) {
    const shared = budgetsOf(await context.config());
    if (shared.length > 0) noteServer(context, await context.server());
    const rows = shared.length === 0 ? [] : await readBudgetRows(await context.client(), shared);
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
