/** Waits for something that listens to a signal, for so long at most, and no longer than `caller` wants. @returns null when the time was up */
export async function withinSeconds<T>(
  seconds: number,
  caller: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const over = new AbortController();
  const { signal } = over;
  const timer = setTimeout(() => over.abort(), seconds * 1_000);
  const leave = (): void => over.abort();
  caller.addEventListener('abort', leave, { once: true });
  try {
    return await work(signal);
  } catch (error) {
    caller.throwIfAborted();
    if (signal.aborted && error === signal.reason) return null;
    throw error;
  } finally {
    clearTimeout(timer);
    caller.removeEventListener('abort', leave);
  }
}
