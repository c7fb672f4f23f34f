import { createHash } from 'node:crypto';
import type { ToolContext } from '../tool.js';

/**
 * Returns the name under which an attempt of `write_file` prepares a file, in the folder of its
 * target. Each attempt has its own name, because an earlier attempt that is presumed dead may still
 * be writing. The next attempt can compute the names of earlier ones and remove what a killed one
 * has left.
 */
export function temporaryName(
  { idempotencyKey, call }: Pick<ToolContext, 'idempotencyKey' | 'call'>,
  attempt: number,
): string {
  const id = createHash('sha256').update(`${idempotencyKey} ${call.id}`).digest('hex').slice(0, 16);
  return `.perdure-${id}-${attempt}.tmp`;
}

/** Returns whether a name is that of a prepared file, which listings hide. */
export function isTemporary(name: string): boolean {
  return name.startsWith('.perdure-') && name.endsWith('.tmp');
}
