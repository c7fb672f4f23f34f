import { normalizeError } from './result/normalize-error.js';
import { attributed } from './stray-errors.js';

const DEFAULT_LIMIT_MS = 5_000;

export type Guarded<Value> =
  { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly message: string };

/**
 * Runs a user's function that is evaluated beside a model reply (a refinement, a predicate, a
 * description), so that it can never cost the reply: what it throws, or a promise that takes longer
 * than `limitMs` (5 s by default), comes back as data; so does what it raises outside its promise.
 * `name` is what people call it. A synchronous endless loop cannot be stopped.
 *
 * Contract: never rejects.
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
    const value = (async () => ({ ok: true, value: await attributed(name, work) }) as const)();
    return await Promise.race([value, late]);
  } catch (thrown) {
    return { ok: false, message: normalizeError(thrown).message };
  } finally {
    clearTimeout(timer);
  }
}
