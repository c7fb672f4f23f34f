import { randomUUID } from 'node:crypto';
import { openStores } from '../../storage/file-stores.js';
import { within } from '../../storage/within.js';
import type { Finding } from './finding.js';

type Environment = Readonly<Record<string, string | undefined>>;

const WITHIN_MS = 30_000;
/** The text is always the same, so all checks together leave at most one object in a store. */
const PROBE = 'perdure doctor checks that this store can be written and read.\n';

/**
 * Checks the store that PERDURE_STORE names: writes and reads a text, and lists the archive.
 * Returns an empty list if the store is in PERDURE_HOME, which `homeFinding` checks.
 */
export async function storeFindings(home: string, env: Environment): Promise<readonly Finding[]> {
  const address = env['PERDURE_STORE']?.trim() ?? '';
  if (address === '') return [];
  // Keys are often written before the bucket, where they do not belong.
  const [begin, end] = [address.indexOf('//') + 2, address.lastIndexOf('@')];
  const shown =
    begin > 1 && end >= begin ? `${address.slice(0, begin)}…${address.slice(end)}` : address;
  const finding = { name: 'store', data: { address: shown } };
  try {
    const { blobs, archive } = openStores(home, env);
    await within(WITHIN_MS, async () => {
      await blobs.get(await blobs.put(PROBE));
      await archive.list({ namespace: 'default', id: randomUUID() });
    });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const fix = `correct PERDURE_STORE (${shown}) or AWS's variables, for workers and clients too`;
    return [{ ...finding, level: 'problem', text, fix }];
  }
  const text = `${shown}: blobs can be written and read, the archive can be listed`;
  return [{ ...finding, level: 'ok', text }];
}
