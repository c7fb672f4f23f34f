import { normalizeError } from './result/normalize-error.js';
import { runAttributed } from './stray-errors.js';

const DEFAULT_LIMIT_MS = 5_000;

/** The value of a user's function, or the reason why there is none. */
export type Guarded<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly message: string };

/**
 * Runs a user's function that is evaluated together with a model reply (a refinement, a predicate,
 * a description), so that it cannot lose the reply. Never rejects: an error that it throws or
 * raises outside its promise, and a promise that takes longer than `limitMs` (5 s by default), are
 * returned as a failure. `name` appears in messages. A synchronous endless loop cannot be stopped.
 */
export async function guarded<Value>(
  name: string,
  work: () => Value | Promise<Value>,
  limitMs = DEFAULT_LIMIT_MS,
): Promise<Guarded<Value>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Guarded<Value>>((resolve) => {
    const message = `it did not finish within ${limitMs / 1000} s`;
    timer = setTimeout(() => resolve({ ok: false, message }), limitMs);
  });
  try {
    const value = (async () => ({ ok: true, value: await runAttributed(name, work) }) as const)();
    return await Promise.race([value, late]);
  } catch (thrown) {
    return { ok: false, message: normalizeError(thrown).message };
  } finally {
    clearTimeout(timer);
  }
}
