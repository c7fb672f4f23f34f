import type { Usage } from '../../core/outcome.js';

export { formatCount } from '../../core/text/count.js';
export { formatDuration } from '../../core/text/duration.js';

/** Formats token usage: `1.2k in, 80 out`. The cost follows if it is known and not zero. */
export function formatUsage({ inputTokens, outputTokens, costUsd, estimated }: Usage): string {
  const about = estimated ? 'about ' : '';
  const tokens = `${about}${formatTokens(inputTokens)} in, ${formatTokens(outputTokens)} out`;
  return costUsd === null || costUsd === 0 ? tokens : `${tokens} · ${formatDollars(costUsd)}`;
}

function formatTokens(tokens: number): string {
  if (tokens < 1_000) return String(tokens);
  if (tokens < 999_950) return `${(tokens / 1_000).toFixed(1)}k`;
  return `${(tokens / 1_000_000).toFixed(1)}M`;
}

function formatDollars(amount: number): string {
  return amount < 0.0001 ? '< $0.0001' : `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
}
