import { type AuditEntry, readAudit } from '../history/audit.js';
import type { PerdureClient } from './client-types.js';
import type { RunLike } from './control.js';
import { partsOfClient } from './create-client.js';
import { storedIds } from './run-ids.js';

/**
 * Reads who did what in runs, also in earlier ones with the same ids, and in those of the agents that they
 * have called: a log that holds digests in place of texts, and in which each entry has the hash of the one
 * before. It is derived from the histories on the server or in the archive, so nothing has to be prepared.
 * Rejects with a `NoRunError` for an unknown run, and with an `UnreadableError` or an `ArchiveError` if a
 * run, also a called one, cannot be read.
 *
 * @example
 * ```ts
 * import { writeFileSync } from 'node:fs';
 * import { auditRuns, createClient } from 'perdure/client';
 *
 * const client = await createClient();
 * const entries = await auditRuns(client, ['desk-17']);
 * writeFileSync('audit.jsonl', entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
 * console.log(entries.at(-1)?.hash);
 * ```
 */
export async function auditRuns(
  client: PerdureClient,
  runs: readonly RunLike<unknown>[],
): Promise<readonly AuditEntry[]> {
  const parts = partsOfClient(client);
  return await readAudit(parts, await storedIds(parts.client, runs, parts.archive));
}
