/**
 * Tokens that a prompt may have. Looked up 2026-11, in lists that were published up to 2026-07;
 * a definition may bring its own.
 *
 * This is less than the window that is advertised where a part of it is kept for the answer: of the
 * 400,000 of `gpt-5` a prompt gets 272,000, of the 1,050,000 of `gpt-5.4` it gets 922,000.
 */
const WINDOWS: ReadonlyMap<string, number> = new Map([
  ['gpt-5.6', 922_000],
  ['gpt-5.6-sol', 922_000],
  ['gpt-5.6-terra', 922_000],
  ['gpt-5.6-luna', 922_000],
  ['gpt-5.5', 922_000],
  ['gpt-5.4', 922_000],
  ['gpt-5.4-mini', 272_000],
  ['gpt-5.4-nano', 272_000],
  ['gpt-5.2', 272_000],
  ['gpt-5.1', 272_000],
  ['gpt-5', 272_000],
  ['gpt-5-mini', 272_000],
  ['gpt-5-nano', 272_000],
  ['gpt-4.1', 1_047_576],
  ['gpt-4.1-mini', 1_047_576],
  ['gpt-4.1-nano', 1_047_576],
  ['gpt-4o', 128_000],
  ['gpt-4o-mini', 128_000],
  ['o3', 200_000],
  ['o4-mini', 200_000],
  ['claude-opus-4-6', 1_000_000],
  ['claude-sonnet-4-6', 1_000_000],
  ['claude-haiku-4-5', 200_000],
  ['gemini-2.5-pro', 1_048_576],
  ['gemini-2.5-flash', 1_048_576],
]);

/** A snapshot such as `gpt-4.1-2025-04-14` or `claude-haiku-4-5-20251001` has what its model has. */
const SNAPSHOT = /-\d{4}-?\d{2}-?\d{2}$/;

/** The model's window from the table, in tokens; null where nobody knows it, as with a local server. */
export function windowOf(model: string): number | null {
  return WINDOWS.get(model) ?? WINDOWS.get(model.replace(SNAPSHOT, '')) ?? null;
}
