/**
 * Thrown if work takes longer than its limit. The work continues unless its signal ends it: a disk
 * that hangs cannot be interrupted.
 */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Returns the result of `work`. If it takes longer than `limitMs`, rejects with a `TimeoutError`
 * and aborts the signal that `work` receives.
 */
export async function within<T>(
  limitMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `no answer within ${limitMs / 1_000} s; check the disk or the service behind it`;
    timer = setTimeout(() => {
      const error = new TimeoutError(message);
      reject(error);
      over.abort(error);
    }, limitMs);
  });
  try {
    return await Promise.race([work(over.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}
