import { type CostOptions, costsFrom } from '../../client/costs.js';
import { visible } from '../../core/state/summaries.js';
import { type Command, EXIT } from '../context.js';
import { columns, formatCount } from '../format/format.js';
import { noteServer } from '../hosting/server-notes.js';
import { withOptions } from '../input/options.js';
import { checkFilter } from './list.js';

interface CostCommandOptions extends Omit<CostOptions, 'by'> {
  readonly per?: NonNullable<CostOptions['by']>;
}

/** `costs`: adds up what runs have cost, per agent, tenant, or tag. Needs no worker. */
export const costs: Command<CostCommandOptions> = {
  declare: (entry) => withOptions(entry, 'per', 'agent', 'tag', 'since', 'before'),
  async run(context, { per = 'agent', ...filter }) {
    checkFilter(filter);
    noteServer(context, await context.server());
    const { archive } = await context.stores();
    const parts = { client: await context.client(), archive };
    const { rows, unreadable } = await costsFrom(parts, { by: per, ...filter });
    if (context.options.json) context.out(JSON.stringify({ per, rows, unreadable }));
    else if (rows.length === 0) context.note('No runs match.');
    else {
      const cells = rows.map(({ name, runs, usage, unpriced }) => [
        name === null ? '-' : visible(name),
        String(runs),
        String(usage.inputTokens),
        String(usage.outputTokens),
        `$${(usage.costUsd ?? 0).toFixed(4)}`,
        unpriced === 0 ? '' : `and ${formatCount(unpriced, 'run')} of unknown cost`,
      ]);
      const head = [per.toUpperCase(), 'RUNS', 'TOKENS IN', 'TOKENS OUT', 'COST', ''];
      for (const line of columns([head, ...cells])) context.out(line);
    }
    for (const { run, why } of unreadable)
      context.note(`Run ${visible(run)} does not count: ${why}`);
    return unreadable.length === 0 ? EXIT.completed : EXIT.failed;
  },
};
