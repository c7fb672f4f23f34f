/** Work took longer than its limit. It continues, since a disk that hangs cannot be interrupted. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/** Returns the result of `work`. Rejects with a `TimeoutError` if it takes longer than `limitMs`. */
export async function within<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `no answer within ${limitMs / 1_000} s; check the disk or the service behind it`;
    timer = setTimeout(() => reject(new TimeoutError(message)), limitMs);
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}
