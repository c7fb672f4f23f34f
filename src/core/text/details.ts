import { escapeMarkdown } from './markdown.js';
import type { RunState } from '../state.js';
import type { RunStatus } from '../status.js';
import { callSummary, formatBytes, visible } from './summaries.js';

const LAST_CALLS = 8;
/** The UI sets the columns of a table close together. */
const GAP = '\u2003';

/** Markdown for Temporal's Current Details: status, spend, the last calls. Always under 20,000 bytes. */
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

function lastCalls(state: RunState): readonly string[] {
  const { messages } = state.transcript;
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message] as const] : [],
    ),
  );
  const calls = messages
    .slice(-4 * LAST_CALLS)
    .flatMap((message) => (message.role === 'assistant' ? (message.calls ?? []) : []))
    .slice(-LAST_CALLS);
  if (calls.length === 0) return [];
  const rows = calls.map((call) => {
    const result = results.get(call.id);
    return `| ${cell(call.id)}${GAP} | ${cell(callSummary(call))}${GAP} | ${result ? outcomeOf(result.text) : '…'} |`;
  });
  return ['| Call | | Result |', '|---|---|---|', ...rows];
}

function outcomeOf(text: string): string {
  const [, errorType] = /^\{"error":\{"type":"(\w+)"/.exec(text) ?? [];
  return errorType ?? formatBytes(text.length);
}

/** No cell breaks out of the table, or holds a link or an image. */
function cell(text: string | undefined): string {
  return escapeMarkdown(visible(text ?? ''));
}
