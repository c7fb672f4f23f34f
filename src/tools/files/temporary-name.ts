import { createHash } from 'node:crypto';
import type { ToolContext } from '../tool.js';

/**
 * The name under which an attempt of `write_file` prepares a file, beside its place. Each attempt has
 * its own, for one that is thought dead may still be writing; the next attempt can work it out, and
 * clear away what a killed one has left.
 */
export function temporaryName(
  { idempotencyKey, call }: Pick<ToolContext, 'idempotencyKey' | 'call'>,
  attempt: number,
): string {
  const id = createHash('sha256').update(`${idempotencyKey} ${call.id}`).digest('hex').slice(0, 16);
  return `.perdure-${id}-${attempt}.tmp`;
}

/** Nobody needs to see what a crash left behind. */
export function isTemporary(name: string): boolean {
  return name.startsWith('.perdure-') && name.endsWith('.tmp');
}
