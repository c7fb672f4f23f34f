import { failureOf } from '../calls/call-result.js';
import { describeGraph } from '../graph/describe.js';
import { runGraph } from '../graph/draw-run.js';
import { planLine } from '../plan/progress.js';
import { escapeMarkdown } from './markdown.js';
import type { RunState } from '../state.js';
import type { ToolMessage } from '../transcript/messages.js';
import type { RunStatus } from '../status.js';
import { callSummary, formatBytes, visible } from './summaries.js';

/** Maximum calls in the table. */
const MAX_CALLS = 8;
/** Space after a column: Temporal's UI sets the columns of a table close together. */
const GAP = '\u2003';

/**
 * Returns Markdown for Temporal's Current Details: status, usage, last calls. Always under 20,000
 * bytes.
 */
export function currentDetails(state: RunState, status: RunStatus): string {
  const { usage } = state.turn.spent;
  const cost = usage.costUsd === null ? 'unknown' : `$${usage.costUsd.toFixed(4)}`;
  const rows = [
    ['Status', status.reason === null ? status.status : `${status.status} (${status.reason})`],
    ['Agent', `${status.agent} · ${state.config.definition.model}`],
    ['Turn, step', `${status.turn}, ${status.step} of ${status.limits.turn.steps ?? '∞'}`],
    ['Tool calls', `${state.turn.spent.toolCalls}`],
    ['Tokens', `${usage.inputTokens} in (${usage.cachedTokens} cached), ${usage.outputTokens} out`],
    ['Cost', cost],
    ...graphRows(state),
    ...(status.doing === null ? [] : [['Doing', status.doing]]),
    ...(status.message === null ? [] : [['To do', status.message]]),
  ];
  const head = [
    '| | |',
    '|---|---|',
    ...rows.map(([name, value]) => `| **${name}**${GAP} | ${cell(value)} |`),
  ];
  return [...head, '', ...lastCalls(state)].join('\n');
}

/**
 * Returns the rows about the run's position in its graph, without times, because the text may be
 * read much later.
 */
function graphRows(state: RunState): readonly (readonly [string, string])[] {
  const graph = runGraph(state);
  if (graph === null) return [];
  const plan = planLine(state);
  const lines = describeGraph(graph, null);
  return [
    ...(lines.length === 0 ? [] : [['Graph', lines.join('; ')] as const]),
    ...(plan === null ? [] : [['Plan', plan] as const]),
  ];
}

function lastCalls(state: RunState): readonly string[] {
  const { messages } = state.transcript;
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message] as const] : [],
    ),
  );
  const calls = messages
    .slice(-4 * MAX_CALLS)
    .flatMap((message) => (message.role === 'assistant' ? (message.calls ?? []) : []))
    .slice(-MAX_CALLS);
  if (calls.length === 0) return [];
  const rows = calls.map((call) => {
    const result = results.get(call.id);
    return `| ${cell(call.id)}${GAP} | ${cell(callSummary(call))}${GAP} | ${result ? resultSummary(result) : '…'} |`;
  });
  return ['| Call | | Result |', '|---|---|---|', ...rows];
}

function resultSummary(result: ToolMessage): string {
  return failureOf(result)?.type ?? formatBytes(result.text.length);
}

/**
 * Returns the text as a table cell, which can neither break out of the table nor contain a link or
 * an image.
 */
function cell(text: string | undefined): string {
  return escapeMarkdown(visible(text ?? ''));
}
