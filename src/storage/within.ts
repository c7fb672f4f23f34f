/** Work took longer than its limit. The work itself goes on unheard: a disk that hangs cannot be interrupted. */
export class LateError extends Error {
  override readonly name = 'LateError';
}

/** Returns what `work` returns. Rejects with a `LateError` when it takes longer than `limitMs`. */
export async function within<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `no answer within ${limitMs / 1_000} s; check the disk or the service behind it`;
    timer = setTimeout(() => reject(new LateError(message)), limitMs);
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}
