import type { Price } from '../core/definition/definition.js';

/**
 * Standard tier, short context. Looked up 2026-11, in lists that were published up to 2026-06:
 * prices change, so a definition may bring its own.
 */
const PRICES: ReadonlyMap<string, Price> = new Map([
  ['gpt-5.5', { input: 5, cachedInput: 0.5, output: 30 }],
  ['gpt-5.4', { input: 2.5, cachedInput: 0.25, output: 15 }],
  ['gpt-5.4-mini', { input: 0.75, cachedInput: 0.075, output: 4.5 }],
  ['gpt-5.4-nano', { input: 0.2, cachedInput: 0.02, output: 1.25 }],
  ['gpt-5.2', { input: 1.75, cachedInput: 0.175, output: 14 }],
  ['gpt-5.1', { input: 1.25, cachedInput: 0.125, output: 10 }],
  ['gpt-5', { input: 1.25, cachedInput: 0.125, output: 10 }],
  ['gpt-5-mini', { input: 0.25, cachedInput: 0.025, output: 2 }],
  ['gpt-5-nano', { input: 0.05, cachedInput: 0.005, output: 0.4 }],
  ['gpt-4.1', { input: 2, cachedInput: 0.5, output: 8 }],
  ['gpt-4.1-mini', { input: 0.4, cachedInput: 0.1, output: 1.6 }],
  ['gpt-4.1-nano', { input: 0.1, cachedInput: 0.025, output: 0.4 }],
  ['gpt-4o', { input: 2.5, cachedInput: 1.25, output: 10 }],
  ['gpt-4o-mini', { input: 0.15, cachedInput: 0.075, output: 0.6 }],
  ['o3', { input: 2, cachedInput: 0.5, output: 8 }],
  ['o4-mini', { input: 1.1, cachedInput: 0.275, output: 4.4 }],
]);

/** A snapshot such as `gpt-4.1-2025-04-14` costs what its model costs. */
const SNAPSHOT = /-\d{4}-\d{2}-\d{2}$/;

/** The model's price: from `overrides` by exact name, else from the table; null where nobody knows it. */
export function priceOf(
  model: string,
  overrides: Readonly<Record<string, Price>> = {},
): Price | null {
  if (Object.hasOwn(overrides, model)) return overrides[model] ?? null;
  return PRICES.get(model) ?? PRICES.get(model.replace(SNAPSHOT, '')) ?? null;
}
