/** There is no Temporal server to work with. The message names what was tried and the cure. */
export class NoServerError extends Error {
  override readonly name = 'NoServerError';
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
