/**
 * Does the work of each index from 0 on, at most so many at once, and gives what comes of it in the
 * order in which it is ready. Whoever reads slowly holds nobody up. Rejects with the first rejection;
 * after that, and when the reader leaves, nothing more is begun and `signal` aborts.
 */
export async function* asReady<T>(
  count: number,
  work: (index: number, signal: AbortSignal) => Promise<T>,
  { atOnce }: { readonly atOnce: number },
): AsyncGenerator<T, void, undefined> {
  const over = new AbortController();
  const ready: (() => T)[] = [];
  let wake: (() => void) | null = null;
  let next = 0;

  const worker = async (): Promise<void> => {
    while (next < count && !over.signal.aborted) {
      const index = next;
      next += 1;
      try {
        const value = await work(index, over.signal);
        ready.push(() => value);
      } catch (error) {
        ready.push(() => {
          throw error;
        });
        return;
      } finally {
        wake?.();
      }
    }
  };

  try {
    for (let place = 0; place < Math.min(atOnce, count); place += 1) void worker();
    for (let given = 0; given < count; given += 1) {
      while (ready.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const take = ready.shift();
      if (take !== undefined) yield take();
    }
  } finally {
    over.abort();
  }
}
