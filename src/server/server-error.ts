import { PerdureError } from '../core/errors.js';

/** There is no Temporal server to work with. The message names what was tried and the cure. */
export class NoServerError extends PerdureError {
  static readonly code = 'no_server';
  override readonly name = 'NoServerError';
  override readonly code = NoServerError.code;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
