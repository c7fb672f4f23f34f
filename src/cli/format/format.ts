import type { Usage } from '../../core/outcome.js';

/** Formats a number with its noun: `1 step`, `3 steps`. */
export function formatCount(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Formats milliseconds: `0.4 s`, `12 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

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
